// node page.mjs PAGE FLOPCAST SOURCE OUT [STEP...]: what somebody does with the page, in headless Chromium; pictures go to OUT. Says each thing
// that holds, and ends with 1 at the first that does not.
import { strict as assert } from 'node:assert';
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Browser } from './browser.mjs';

const [page, flopcast, source, out, ...wanted] = process.argv.slice(2);
const url = `file://${page}`, json = ['--format', 'json'];
const browser = new Browser(process.env.CHROMIUM ?? 'chromium');
const shown = id => browser.get(`document.getElementById('${id}').textContent`);
const models = join(source, 'tests/model/data');
const native = args => JSON.parse(execFileSync(flopcast, [...args, ...json], { encoding: 'utf8', cwd: models, maxBuffer: 1 << 30, stdio: 'pipe' }));
const three = x => Number(x.toPrecision(3)).toLocaleString('en-US', { maximumFractionDigits: 20 });
const answered = async () => {
  await browser.until("!document.getElementById('answers').classList.contains('waiting')");
  await browser.until("document.body.dataset.whole === String(turn)");
};
const say = text => console.log(`ok  ${text}`);

async function opens() {
  assert(statSync(page).size < 4e6);
  const firsts = [];
  for (let i = 0; i < 3; i++) {
    await browser.open(url, 1280, 900);
    await browser.until('document.body.dataset.firstAnswer');
    firsts.push(Number(await browser.get('document.body.dataset.firstAnswer')));
  }
  const most = Number(process.env.PAGE_FIRST_MS ?? 1000);
  assert(Math.min(...firsts) < most, `first answers after ${firsts} ms`);
  say(`${(statSync(page).size / 1e6).toFixed(2)} MB; first answer ${Math.min(...firsts)} ms after the page was opened`);
}

async function asksNobody() {
  await answered();
  const asked = browser.heard.filter(({ method }) => method === 'Network.requestWillBeSent').map(({ params }) => params.request.url);
  assert.deepEqual(asked.filter(to => !to.startsWith(url) && !/^(blob|data):/.test(to)), []);
  const wrong = browser.heard.filter(({ method, params }) => method === 'Runtime.exceptionThrown' || params?.entry?.level === 'error');
  assert.deepEqual(wrong.map(({ params }) => JSON.stringify(params)), []);
  say('asks nobody, and says nothing wrong');
}

// The same bytes: names of files are those of the folder that the page is made to have.
async function sameDigits() {
  const jobs = readFileSync(join(source, 'tests/page/jobs.txt'), 'utf8').split('\n').filter(line => line && !line.startsWith('#'));
  const folder = JSON.stringify(source), differ = [];
  await browser.get(`window.same = new Workers(workers.made.module, files, 1, ${folder}), 0`);
  for (const job of jobs) {
    const args = [...job.split(' '), ...json], own = {};
    if (args[1].endsWith('.json'))
      own[args[1]] = readFileSync(join(models, args[1]), 'utf8');
    const env = { ...process.env, FLOPCAST_DATA: source, COLUMNS: '80' };
    const here = spawnSync(flopcast, args, { encoding: 'utf8', cwd: models, env, maxBuffer: 1 << 30 });
    const there = await browser.get(`same.run(${JSON.stringify(args)}, ${JSON.stringify(own)})`);
    const lines = { there: there.stdout.split('\n'), here: here.stdout.split('\n') };
    const other = lines.here.map((text, i) => [text, lines.there[i]]).filter(([a, b]) => a !== b);
    const said = here.status && there.stderr.trim() !== here.stderr.trim();
    if (there.status !== here.status || other.length || lines.here.length !== lines.there.length || said)
      differ.push([job, there.status, there.stderr, ...other.slice(0, 5)]);
  }
  assert.deepEqual(differ, []);
  const none = await browser.get(`same.run(['run', 'gpt2_ddp_v100', '--db', 'a.db'])`);
  assert(none.status === 1 && none.stderr.includes('the page has no sqlite3_open_v2'), none.stderr);
  assert.equal((await browser.get(`same.run(['run', 'gpt2_ddp_v100', '-q'])`)).status, 0);
  say(`${jobs.length} commands give what the program gives, byte for byte`);
}

async function changesByKeys() {
  await browser.open(url, 1280, 900);
  await answered();
  const names = [];
  for (let i = 0; i < 60; i++) {
    await browser.key('Tab');
    const name = await browser.get('document.activeElement.id || document.activeElement.tagName');
    if (names.includes('model') && name === 'BODY')
      break;
    names.push(name);
  }
  for (const id of ['model', 'config', 'topology', 'gpus', 'strategy', 'micro', 'seq', 'batch', 'checkpointing', 'command', 'copy', 'SUMMARY', 'BUTTON'])
    assert(names.includes(id), `Tab does not come to ${id}: ${names}`);
  await browser.open(url, 1280, 900);
  await answered();
  for (let i = 0; await browser.get('document.activeElement.id') !== 'gpus' && i < 20; i++)
    await browser.key('Tab');
  await browser.type('128');
  await browser.until("document.getElementById('command').textContent.includes('--gpus 128')");
  await answered();
  const job = ['run', 'llama3.1-8b', '--topology', 'h100-8x400g', '--gpus', '128', '--strategy', 'fsdp2', '--seq-len', '8192', '--micro-batch', '1'];
  assert.equal(await shown('command'), `flopcast ${job.join(' ')}`);
  const [point] = native(job);
  assert.equal(await shown('speed'), `${three(point.tokens_per_s_per_gpu)} tokens/s a GPU`);
  assert.match(await shown('sure'), new RegExp(`${three(point.tokens_per_s_per_gpu_low)}.*${three(point.tokens_per_s_per_gpu_high)}`));
  const close = execFileSync(flopcast, job, { encoding: 'utf8', cwd: models, stdio: 'pipe' }).replaceAll('\n', ' ').match(/close: (fits in \d+ of 10 such cases)/);
  assert.match(await shown('verdict'), close ? new RegExp(`^Close: ${close[1]}, [\\d.]+ GiB to spare$`) : /^Fits, [\d.]+ GiB to spare$/);
  for (const size of [32, 512])
    assert((await shown('curve-table')).includes(`${size}${three(native(job.map(word => word === '128' ? String(size) : word))[0].tokens_per_s_per_gpu)}`));
  await browser.key('Tab');
  await browser.key('ArrowDown');
  await browser.until("document.getElementById('command').textContent.includes('--strategy fsdp ')");
  await answered();
  say('Tab comes to everything; GPUs and strategy are changed by keys, and the curve is that of the program');
}

async function takesFiles() {
  const config = join(source, 'tests/model/data/gpt-oss-20b.json');
  await browser.open(`${url}#gpus=32&seq=4096`, 1280, 900);
  await answered();
  const drag = { x: 100, y: 200, data: { items: [], files: [config], dragOperationsMask: 1 } };
  for (const type of ['dragEnter', 'dragOver', 'drop'])
    await browser.send('Input.dispatchDragEvent', { type, ...drag });
  await browser.until("document.getElementById('command').textContent.includes('gpt-oss-20b.json')");
  await answered();
  const job = ['run', 'gpt-oss-20b.json', '--topology', 'h100-8x400g', '--gpus', '32', '--strategy', 'fsdp2', '--seq-len', '4096', '--micro-batch', '1'];
  assert.equal(await shown('command'), `flopcast ${job.join(' ')}`);
  const [point] = native(job);
  assert.match(await shown('verdict'), point.status === 'oom' ? /^Does not fit: [\d.]+ GiB short$/ : /^Fits|^Close: fits in/);
  const { root } = await browser.send('DOM.getDocument');
  const { nodeId } = await browser.send('DOM.querySelector', { nodeId: root.nodeId, selector: '#config' });
  await browser.send('DOM.setFileInputFiles', { nodeId, files: [join(source, 'tests/page/jobs.txt')] });
  await browser.until("document.getElementById('trouble').textContent.includes('config.json')");
  assert.equal(await shown('verdict'), 'This job cannot be');
  say('a config.json is dropped, and one that is none is refused in the words of the program');
}

async function searches() {
  await browser.open(`${url}#gpus=16&seq=4096&batch=64`, 1280, 900);
  await answered();
  await browser.until("document.querySelectorAll('#found tbody tr').length > 2", 300);
  const command = (await shown('command')).split('\n')[1];
  assert.match(command, /^flopcast tune llama3.1-8b --topology h100-8x400g --gpus 16 --global-batch 64 --seq-len 4096 --top 3 --limit 60$/);
  const found = native(command.split(' ').slice(1));
  const best = Math.max(...found.map(({ noisy_tokens_per_s, tokens_per_s }) => noisy_tokens_per_s ?? tokens_per_s ?? 0));
  assert((await browser.get("document.querySelector('#found tbody tr').textContent")).includes(three(best)));
  say('the layout that is found first is that of tune');
  await browser.picture(join(out, 'search.png'));
}

async function isReadable() {
  for (const [width, height, dark] of [[390, 844, false], [1280, 900, false], [1280, 900, true]]) {
    await browser.open(url, width, height, dark);
    await answered();
    assert.equal(await browser.get('document.documentElement.scrollWidth'), width);
    await browser.picture(join(out, `page-${width}${dark ? '-dark' : ''}.png`));
  }
  await browser.send('Accessibility.enable');
  const { nodes } = await browser.send('Accessibility.getFullAXTree');
  const roles = new Set(['button', 'combobox', 'spinbutton', 'textbox', 'image', 'table', 'region']);
  const nameless = nodes.filter(({ role, name, ignored }) => !ignored && roles.has(role?.value) && role.value !== 'table' && !name?.value);
  assert.deepEqual(nameless.map(({ role }) => role.value), []);
  say('390 and 1,280 pixels, light and dark, without scrolling aside; every control and picture has a name');
}

try {
  for (const step of [opens, asksNobody, sameDigits, changesByKeys, takesFiles, searches, isReadable])
    if (!wanted.length || wanted.includes(step.name))
      await step();
} finally {
  await browser.close();
}
