// A headless Chromium over the two pipes of --remote-debugging-pipe: messages of the DevTools protocol, each with a 0 behind it.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class Browser {
  constructor(program) {
    this.profile = mkdtempSync(join(tmpdir(), 'flopcast-page-'));
    this.process = spawn(program, ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars',
      '--no-first-run', `--user-data-dir=${this.profile}`, '--remote-debugging-pipe', 'about:blank'],
    { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
    this.asked = new Map();
    this.heard = [];
    this.next = 1;
    let rest = '';
    this.process.stdio[4].setEncoding('utf8').on('data', text => {
      const messages = (rest + text).split('\0');
      rest = messages.pop();
      for (const message of messages.map(JSON.parse)) {
        if (message.id) {
          const { resolve, reject } = this.asked.get(message.id);
          this.asked.delete(message.id);
          message.error ? reject(new Error(message.error.message)) : resolve(message.result);
        } else {
          this.heard.push(message);
        }
      }
    });
  }

  send(method, params = {}) {
    const id = this.next++;
    this.process.stdio[3].write(JSON.stringify({ id, method, params, sessionId: this.session }) + '\0');
    return new Promise((resolve, reject) => this.asked.set(id, { resolve, reject }));
  }

  async open(url, width, height, dark = false) {
    const { targetInfos } = await this.send('Target.getTargets');
    const { targetId } = targetInfos.find(({ type }) => type === 'page');
    this.session ??= (await this.send('Target.attachToTarget', { targetId, flatten: true })).sessionId;
    for (const domain of ['Page', 'Runtime', 'Network', 'DOM', 'Log'])
      await this.send(`${domain}.enable`);
    await this.size(width, height);
    await this.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }] });
    this.heard = [];
    await this.send('Page.navigate', { url: 'about:blank' });
    await this.send('Page.navigate', { url });
  }

  size(width, height) {
    return this.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: width < 600 });
  }

  // What an expression gives, a promise's result included.
  async get(expression) {
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails)
      throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  async until(expression, seconds = 120) {
    for (const end = Date.now() + 1000 * seconds; Date.now() < end; await new Promise(done => setTimeout(done, 20)))
      if (await this.get(expression).catch(() => false))
        return;
    throw new Error(`not in ${seconds} s: ${expression}`);
  }

  async key(key, modifiers = 0) {
    const codes = { Tab: 9, Enter: 13, ArrowDown: 40, ArrowUp: 38, Backspace: 8, ' ': 32 }, text = { Enter: '\r' }[key] ?? (key.length === 1 ? key : undefined);
    const event = { key, code: key.length === 1 ? '' : key, windowsVirtualKeyCode: codes[key] ?? key.toUpperCase().charCodeAt(0), modifiers };
    const control = modifiers === 2, commands = control && key === 'a' ? ['selectAll'] : undefined;
    await this.send('Input.dispatchKeyEvent', { type: 'keyDown', text: control ? undefined : text, commands, ...event });
    await this.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
  }

  async type(text) {
    await this.key('a', 2);
    for (const letter of text)
      await this.key(letter);
  }

  async picture(file, whole = true) {
    const { data } = await this.send('Page.captureScreenshot', { format: 'png', captureBeyondViewport: whole });
    writeFileSync(file, Buffer.from(data, 'base64'));
  }

  async close() {
    const ended = new Promise(done => this.process.on('exit', done));
    this.session = undefined;
    await this.send('Browser.close').catch(() => {});
    await ended;
    rmSync(this.profile, { recursive: true, force: true });
  }
}
