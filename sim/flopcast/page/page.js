// The page: what is asked becomes arguments of `flopcast`, workers run the program with them, and what it prints as JSON is
// drawn. No number is made here but differences and sums that a reader could make of those shown.
'use strict';

const $ = id => document.getElementById(id);
const SIZES = [8, 16, 32, 64, 128, 256, 512], RECOMPUTE = ['none', 'selective', 'full'];
const IMAGES = /^family: *(convnet|vit|dhen)/m;
const GIB = 2 ** 30;
const COLOURS = { parameters: '#0072b2', gradients: '#d55e00', optimizer: '#e69f00', activations: '#009e73', gathered: '#56b4e9', buffers: '#cc79a7',
  context: '#8a93a0', nccl: '#b9a44c' };
const FIELDS = ['model', 'topology', 'gpus', 'strategy', 'micro', 'seq', 'batch', 'checkpointing', 'tensor', 'pipeline', 'context', 'expert',
  'sequence', 'precision', 'optimizer', 'stack'];
const FIRST = { model: 'llama3.1-8b', topology: 'h100-8x400g', gpus: '64', strategy: 'fsdp2', micro: '1', seq: '8192' };

// ---- the program in workers ----

async function unpack(id) {
  const text = atob($(id).textContent.trim()), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++)
    bytes[i] = text.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
}

// Commands wait in a queue; drop() forgets those that wait and ends those that run, whose promises are never kept.
class Workers {
  constructor(module, files, n, folder = '/flopcast') {
    this.url = URL.createObjectURL(new Blob([$('worker').textContent], { type: 'text/javascript' }));
    this.made = { module, files, folder };
    this.idle = [];
    this.busy = new Map();
    this.queue = [];
    this.next = 0;
    for (let i = 0; i < n; i++)
      this.add();
  }

  add() {
    const worker = new Worker(this.url);
    worker.postMessage(this.made);
    worker.onmessage = ({ data }) => {
      const { done } = this.busy.get(worker);
      this.busy.delete(worker);
      this.idle.push(worker);
      done(data);
      this.start();
    };
    this.idle.push(worker);
  }

  start() {
    while (this.queue.length && this.idle.length) {
      const command = this.queue.shift(), worker = this.idle.pop();
      this.busy.set(worker, command);
      worker.postMessage({ id: this.next++, args: command.args, own: command.own });
    }
  }

  run(args, own) {
    return new Promise(done => {
      this.queue.push({ args, own, done });
      this.start();
    });
  }

  drop() {
    this.queue = [];
    for (const worker of this.busy.keys()) {
      worker.terminate();
      this.add();
    }
    this.busy.clear();
  }
}

let workers = null, files = null, dropped = null; // dropped: {name, text} of a config.json
const models = new Map(); // by name: the text of the file that has it, and what it is
const known = new Map(); // results by command

async function ask(args) {
  const own = dropped ? { [dropped.name]: dropped.text } : {};
  const key = JSON.stringify([args, own]);
  if (known.size > 500)
    known.clear();
  const result = known.get(key) ?? await workers.run(args, own);
  known.set(key, result);
  return result;
}

// ---- what is asked ----

const value = id => $(id).value.trim();

// A model whose name a scenario begins with, which the program would take instead, is called by its file.
function modelName() {
  const name = value('model'), scenario = Object.keys(files).find(file => file.startsWith(`scenarios/${name}`) && /^[-_.]/.test(file.slice(10 + name.length)));
  return dropped ? dropped.name : scenario ? `scenarios/models/${name}.yaml` : name;
}

const isOfImages = () => !dropped && IMAGES.test(models.get(value('model'))?.text ?? '');

function jobArguments(change = {}) {
  const given = id => id in change ? String(change[id]) : value(id);
  const args = [modelName(), '--topology', given('topology'), '--gpus', given('gpus'), '--strategy', given('strategy')];
  const option = (name, text, none = '') => { if (text && text !== none) args.push(name, text); };
  if (!isOfImages())
    option('--seq-len', given('seq'));
  option('--micro-batch', given('micro'));
  option('--global-batch', given('batch'));
  option('--checkpointing', given('checkpointing'), 'none');
  for (const degree of ['tensor', 'pipeline', 'context', 'expert'])
    option(`--${degree}`, given(degree), '1');
  if (given('sequence'))
    args.push('--set', 'parallelism.sequence=true');
  option('--precision', given('precision'));
  option('--optimizer', given('optimizer'));
  option('--stack', given('stack'));
  return args;
}

const runArguments = change => ['run', ...jobArguments(change), '--format', 'json'];

// The best of a bounded search: it is asked for with every change. all: however long it takes.
function searchArguments(all) {
  const sequences = value('batch') || Number(value('gpus')) * Number(value('micro'));
  const args = ['tune', modelName(), '--topology', value('topology'), '--gpus', value('gpus'), '--global-batch', String(sequences)];
  if (!isOfImages())
    args.push('--seq-len', value('seq'));
  if (value('precision'))
    args.push('--precision', value('precision'));
  if (value('optimizer'))
    args.push('--optimizer', value('optimizer'));
  return [...args, '--top', '3', ...all ? [] : ['--limit', '60']];
}

const quoted = word => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
const asTyped = args => ['flopcast', ...args].map(quoted).join(' ');

// ---- numbers for people, as the program rounds them ----

const three = x => x === 0 ? '0' : Number(x.toPrecision(3)).toLocaleString('en-US', { maximumFractionDigits: 20 });
const gib = bytes => `${(bytes / GIB).toFixed(1)} GiB`;
const percent = x => `${(100 * x).toFixed(1)} %`;
const sum = parts => Object.values(parts).reduce((a, b) => a + b, 0);
const perSecond = point => point.tokens_per_s_per_gpu;
const unit = () => isOfImages() ? 'images/s' : 'tokens/s';

// The allocator holds more than tensors take; context and NCCL come on top.
function memoryOf(point) {
  const parts = point.memory.peak_bytes || point.memory.required_bytes || {};
  const beside = (parts.context || 0) + (parts.nccl || 0);
  return { parts, need: point.status === 'oom' ? point.required_bytes || sum(parts) : point.peak_reserved_bytes + beside, has: point.hbm_capacity_bytes };
}

function make(name, attributes = {}, ...children) {
  const svg = ['svg', 'g', 'rect', 'line', 'path', 'circle', 'text', 'title'].includes(name);
  const made = svg ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name);
  for (const [key, text] of Object.entries(attributes))
    key.startsWith('on') ? made.addEventListener(key.slice(2), text) : made.setAttribute(key, text);
  made.append(...children);
  return made;
}

const row = (head, ...cells) => make('tr', {}, make('th', { scope: 'row' }, head), ...cells.map(cell => cell instanceof Node ? cell : make('td', {}, cell)));
const headOf = (...names) => make('thead', {}, make('tr', {}, ...names.map(name => make('th', { scope: 'col' }, name))));

// ---- the answer ----

function showTrouble(text) {
  $('trouble').textContent = text;
  $('trouble').hidden = !text;
}

function showNothing(why) {
  $('answer').className = 'bad';
  $('verdict').textContent = 'This job cannot be';
  $('bar').textContent = why;
  for (const id of ['speed', 'words', 'how-sure', 'figures', 'memory', 'memory-parts', 'memory-is', 'curve', 'curve-table', 'grid', 'printed'])
    $(id).replaceChildren();
  $('sure').toggleAttribute('hidden', true);
  $('answers').classList.add('wrong');
  showTrouble(why);
}

// Within the error of peaks: in how many of ten such cases the job fits. Where the allocator tries again it just fits.
function closeOf(point) {
  const share = point.fits_share;
  return share && share <= 0.949 && !(point.alloc_retries_a_step > 0) ? Math.max(1, Math.floor(10 * share)) : 0;
}

function showVerdict(point) {
  const { need, has } = memoryOf(point), fits = point.status !== 'oom', close = fits ? closeOf(point) : 0;
  $('answer').className = close ? 'close' : fits ? 'good' : 'bad';
  $('answers').classList.remove('wrong');
  $('verdict').textContent = close ? `Close: fits in ${close} of 10 such cases, ${gib(has - need)} to spare`
    : fits ? `Fits, ${gib(has - need)} to spare` : `Does not fit: ${gib(point.shortfall_bytes ?? need - has)} short`;
  $('speed').replaceChildren();
  $('sure').toggleAttribute('hidden', !fits);
  if (!fits) {
    $('speed').append(`It needs ${gib(need)} of ${gib(has)}${point.oom_op ? `; first at ${point.oom_op}` : ''}`);
    $('bar').textContent = $('verdict').textContent;
    $('figures').replaceChildren();
    return;
  }
  $('speed').append(make('strong', {}, three(perSecond(point))), ` ${unit()} a GPU`);
  $('bar').textContent = `${$('verdict').textContent} · ${$('speed').textContent}`;
  drawSure(point);
  const figures = [[`${unit()} of the job`, three(perSecond(point) * point.gpus)], ['Step', `${three(point.step_time_s)} s`],
    ['MFU', percent(point.mfu)], ['TFLOPS a GPU', three(point.tflops_per_gpu)], ['Network waits', percent(point.exposed_comm_s / point.step_time_s)]];
  if (point.bubble_s)
    figures.push(['Pipeline bubble', percent(point.bubble_s / point.step_time_s)]);
  if (point.gpu_power_w)
    figures.push(['Power of a GPU', `${three(point.gpu_power_w)} W`]);
  $('figures').replaceChildren(...figures.map(([name, text]) => make('div', {}, make('dt', {}, name), make('dd', {}, text))));
}

function drawSure(point) {
  const low = point.tokens_per_s_per_gpu_low, high = point.tokens_per_s_per_gpu_high, at = perSecond(point);
  const svg = $('sure'), width = svg.clientWidth || 300, from = low - (high - low) * 0.35, to = high + (high - low) * 0.35;
  if (low === null || high === null) {
    svg.toggleAttribute('hidden', true);
    return;
  }
  const x = v => (v - from) / (to - from) * width;
  svg.setAttribute('viewBox', `0 0 ${width} 46`);
  svg.setAttribute('aria-label', `9 of 10 measured runs of such jobs lie between ${three(low)} and ${three(high)}`);
  svg.replaceChildren(make('line', { class: 'axis', x1: 0, x2: width, y1: 10, y2: 10 }),
    make('rect', { class: 'band', x: x(low), width: x(high) - x(low), y: 1, height: 18, rx: 4 }),
    make('circle', { class: 'dot chosen', cx: x(at), cy: 10, r: 5 }),
    make('text', { x: x(low), y: 36, 'text-anchor': 'middle' }, three(low)), make('text', { x: x(high), y: 36, 'text-anchor': 'middle' }, three(high)),
    make('text', { x: (x(low) + x(high)) / 2, y: 36, 'text-anchor': 'middle' }, width > 320 ? '9 of 10 such runs' : '9 of 10'));
}

function showMemory(point) {
  const { parts, need, has } = memoryOf(point), svg = $('memory'), width = svg.clientWidth || 300, most = Math.max(has, need) * 1.02;
  const shown = Object.entries(parts).filter(([, bytes]) => bytes > 0).sort((a, b) => b[1] - a[1]);
  const rest = need - sum(parts);
  svg.setAttribute('viewBox', `0 0 ${width} 44`);
  svg.setAttribute('aria-label', `${gib(need)} of ${gib(has)}: ${shown.map(([name, bytes]) => `${name} ${gib(bytes)}`).join(', ')}`);
  svg.replaceChildren(make('rect', { x: 0, y: 4, width: has / most * width, height: 22, rx: 4, fill: 'var(--page)', stroke: 'var(--line)' }));
  let at = 0;
  const items = [];
  for (const [name, bytes] of rest > 0.01 * GIB ? [...shown, ['held by the allocator', rest]] : shown) {
    const colour = COLOURS[name] || '#c9ced6';
    svg.append(make('rect', { x: at / most * width, y: 4, width: Math.max(bytes / most * width, 0.5), height: 22, fill: colour },
      make('title', {}, `${name}: ${gib(bytes)}`)));
    const mark = make('i', { 'aria-hidden': 'true' });
    mark.style.background = colour;
    items.push(make('li', {}, mark, name === 'nccl' ? 'NCCL' : name === 'context' ? 'CUDA context' : name, make('span', {}, gib(bytes))));
    at += bytes;
  }
  const end = has / most * width;
  svg.append(make('line', { class: 'none', x1: end, x2: end, y1: 0, y2: 30 }),
    make('text', { x: end, y: 42, 'text-anchor': end > width / 2 ? 'end' : 'start' }, `${gib(has)} of ${point.gpu}`));
  $('memory-parts').replaceChildren(...items);
  $('memory-is').textContent = `of a GPU at the fullest moment of a step: ${gib(need)}`;
}

// ---- the curve: points come one after the other ----

const curve = new Map(); // by GPUs: a point, or why there is none

function drawCurve() {
  const sizes = [...curve.keys()].sort((a, b) => a - b), points = sizes.map(n => curve.get(n)).filter(point => point.status === 'ok');
  const svg = $('curve'), width = svg.clientWidth || 300, height = points.length ? 300 : 70, left = 54, right = 14, top = 22, bottom = 34;
  const most = Math.max(1, ...points.map(point => point.tokens_per_s_per_gpu_high || perSecond(point))) * 1.04;
  const ends = [Math.log2(Math.min(8, ...sizes)), Math.log2(Math.max(512, ...sizes))];
  const x = n => left + 16 + (Math.log2(n) - ends[0]) / (ends[1] - ends[0]) * (width - left - right - 32);
  const y = v => height - bottom - v / most * (height - top - bottom);
  svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  svg.setAttribute('height', height);
  svg.replaceChildren();
  const magnitude = 10 ** Math.floor(Math.log10(most)), step = [0.2, 0.5, 1, 2].map(m => m * magnitude).find(s => most / s <= 6);
  for (let v = 0; v <= (points.length ? most : 0); v += step)
    svg.append(make('line', { class: 'axis', x1: left, x2: width - right, y1: y(v), y2: y(v) }),
      make('text', { x: left - 8, y: y(v) + 4, 'text-anchor': 'end' }, three(v)));
  for (const n of SIZES)
    svg.append(make('text', { x: x(n), y: height - 14, 'text-anchor': 'middle' }, String(n)));
  svg.append(make('text', { x: width - right, y: height, 'text-anchor': 'end' }, 'GPUs'));
  const sure = points.filter(point => point.tokens_per_s_per_gpu_low !== null);
  const at = (point, v) => `${x(point.gpus).toFixed(1)},${y(v).toFixed(1)}`;
  if (sure.length > 1)
    svg.append(make('path', { class: 'band', d: `M${[...sure.map(point => at(point, point.tokens_per_s_per_gpu_high)),
      ...[...sure].reverse().map(point => at(point, point.tokens_per_s_per_gpu_low))].join('L')}Z` }));
  if (points.length > 1)
    svg.append(make('path', { class: 'curve', d: `M${points.map(point => at(point, perSecond(point))).join('L')}` }));
  const chosen = Number(value('gpus'));
  for (const point of points)
    svg.append(make('circle', { class: point.gpus === chosen ? 'dot chosen' : 'dot', cx: x(point.gpus), cy: y(perSecond(point)), r: 5 },
      make('title', {}, `${point.gpus} GPUs: ${three(perSecond(point))} ${unit()} a GPU`)));
  for (const point of points)
    if (width > 480 || point.gpus === chosen || point === points.at(-1))
      svg.append(make('text', { class: 'strong', x: x(point.gpus), y: y(perSecond(point)) - 12, 'text-anchor': 'middle' }, three(perSecond(point))));
  for (const n of sizes)
    if (curve.get(n).status !== 'ok') {
      const cx = x(n), cy = height - bottom - 8;
      svg.append(make('path', { class: 'none', d: `M${cx - 4},${cy - 4}l8,8m0,-8l-8,8` }, make('title', {}, `${n} GPUs: ${whyNot(curve.get(n))}`)));
      if (width > 480)
        svg.append(make('text', { x: cx, y: cy - 10, 'text-anchor': 'middle' }, curve.get(n).status === 'oom' ? 'no room' : 'not so'));
    }
  const said = point => point.status === 'ok' ? three(perSecond(point)) : whyNot(point);
  svg.setAttribute('aria-label', `Speed by GPUs: ${sizes.map(n => `${n}: ${said(curve.get(n))}`).join('; ')}`);
  $('curve-table').replaceChildren(headOf('GPUs', `${unit()} a GPU`, '9 of 10', 'MFU', 'of the job'), make('tbody', {}, ...sizes.map(n => {
    const point = curve.get(n);
    if (point.status !== 'ok')
      return row(String(n), make('td', { colspan: 4, class: 'text bad-cell' }, whyNot(point)));
    return row(String(n), three(perSecond(point)), `${three(point.tokens_per_s_per_gpu_low)} to ${three(point.tokens_per_s_per_gpu_high)}`, percent(point.mfu),
      three(perSecond(point) * n));
  })));
}

const whyNot = point => point.status === 'oom' ? `out of memory, ${gib(point.shortfall_bytes ?? 0)} short` : point.why;

// ---- micro-batches and recomputation ----

const grid = new Map();
const batches = () => { const least = Math.max(1, Math.floor(Number(value('micro')) / 2)); return [1, 2, 4, 8].map(n => n * least); };

function drawGrid() {
  const now = `${value('micro')} ${value('checkpointing') || 'none'}`;
  const best = Math.max(0, ...[...grid.values()].map(point => perSecond(point) || 0));
  const cell = (micro, recompute) => {
    const point = grid.get(`${micro} ${recompute}`), name = `${micro} ${recompute}`;
    if (!point)
      return make('td', {}, '…');
    if (point.status !== 'ok')
      return make('td', { class: 'bad-cell', title: whyNot(point) }, point.status === 'oom' ? 'no room' : '-');
    const kind = [name === now ? 'chosen' : '', perSecond(point) === best ? 'best' : ''].join(' ').trim();
    const label = `micro-batch ${micro}, recomputation ${recompute}: ${three(perSecond(point))} ${unit()}`;
    return make('td', kind ? { class: kind } : {}, make('button', { type: 'button', 'aria-label': label,
      onclick: () => take({ micro: String(micro), checkpointing: recompute === 'none' ? '' : recompute }) }, three(perSecond(point))));
  };
  $('grid').replaceChildren(headOf('batch', ...RECOMPUTE),
    make('tbody', {}, ...batches().map(micro => row(String(micro), ...RECOMPUTE.map(recompute => cell(micro, recompute))))));
}

// ---- one turn: the chosen job first, then what surrounds it ----

let turn = 0;

function pointOf(result) {
  if (result.status === 0)
    return JSON.parse(result.stdout)[0];
  return { status: 'wrong', why: result.stderr.split('\n').find(line => / error: /.test(line)) || result.stderr };
}

async function answer() {
  const mine = ++turn, fresh = () => mine === turn;
  workers.drop();
  remember();
  describe();
  $('found').replaceChildren();
  $('search-is').textContent = '';
  $('search').hidden = true;
  curve.clear();
  grid.clear();
  $('answers').classList.add('waiting');
  const plain = ['run', ...jobArguments()];
  $('command').textContent = asTyped(plain);
  const result = await ask(runArguments());
  if (!fresh())
    return;
  $('answers').classList.remove('waiting');
  if (result.status !== 0) {
    showNothing(result.stderr);
    document.body.dataset.whole = String(mine);
    return;
  }
  const point = pointOf(result), gpus = Number(value('gpus'));
  showTrouble(result.stderr);
  showVerdict(point);
  showMemory(point);
  curve.set(gpus, point);
  drawCurve();
  document.body.dataset.firstAnswer ??= performance.now().toFixed(0);
  const printed = await ask(plain);
  if (!fresh())
    return;
  $('printed').textContent = printed.stdout;
  const paragraphs = printed.stdout.split('\n\n').map(text => text.replaceAll('\n', ' '));
  $('words').textContent = paragraphs[0];
  $('how-sure').textContent = paragraphs.find(text => text.startsWith('how sure: ')) ?? '';
  await around(mine, gpus);
}

async function around(mine, gpus) {
  const fresh = () => mine === turn;
  drawGrid();
  const jobs = [...SIZES.filter(n => n !== gpus).map(n => [runArguments({ gpus: n }), point => curve.set(n, point), drawCurve]),
    ...RECOMPUTE.flatMap(recompute => batches().map(micro =>
      [runArguments({ micro, checkpointing: recompute }), point => grid.set(`${micro} ${recompute}`, point), drawGrid]))];
  await Promise.all(jobs.map(async ([args, put, draw]) => {
    const result = await ask(args);
    if (!fresh())
      return;
    put(pointOf(result));
    draw();
  }));
  if (!fresh())
    return;
  document.body.dataset.whole = String(mine);
  await search(mine, false);
}

async function search(mine, all) {
  const args = searchArguments(all);
  $('search').hidden = true;
  $('search-is').textContent = 'Searching';
  const result = await ask([...args, '--format', 'json']);
  if (mine !== turn)
    return;
  $('command').textContent = [['run', ...jobArguments()], args].map(asTyped).join('\n');
  if (result.status === 0)
    showFound(JSON.parse(result.stdout));
  else
    $('search-is').textContent = result.stderr;
}

function showFound(candidates) {
  const speed = found => found.noisy_tokens_per_s ?? found.tokens_per_s;
  const ran = candidates.filter(found => found.tokens_per_s).sort((a, b) => speed(b) - speed(a));
  const kinds = new Set(), best = [];
  for (const found of ran) {
    const kind = `${found.strategy} ${found.stack}`;
    if (best.length < 4 || !kinds.has(kind))
      best.push(found);
    kinds.add(kind);
  }
  const layout = found => [['tensor', found.tensor], ['context', found.context], ['pipeline', found.pipeline], ['chunks', found.virtual],
    ['expert', found.expert]]
    .filter(([, n]) => n > 1).map(([name, n]) => `${name} ${n}`).join(', ') || (found.sharding_group_size ? `groups of ${found.sharding_group_size}` : '-');
  const count = status => candidates.filter(found => found.status === status).length, left = count('left_out');
  $('search').hidden = left === 0;
  $('search-is').textContent = 'What flopcast tune finds at this global batch: '
    + `of ${candidates.length.toLocaleString('en-US')} candidates ${count('pruned')} cannot fit, ${ran.length} were simulated${left ? `, ${left} were not looked at` : ran.length ? ', the others are slower by their bounds' : ''}.`;
  const cell = text => make('td', { class: 'text' }, text);
  const head = headOf('Strategy', 'layout', `${unit()} of the job`, 'GiB', 'batch', 'recomputed', 'stack');
  for (const i of [1, 5, 6])
    head.firstChild.children[i].className = 'text';
  $('found').replaceChildren(...best.length ? [head] : [], make('tbody', {}, ...best.map(found => row(found.strategy, cell(layout(found)), three(speed(found)),
    (found.peak_allocated_bytes / GIB).toFixed(1), String(found.micro_batch), cell(found.activation_checkpointing), cell(found.stack || '-')))));
}

// ---- the form ----

function fill(id, options) {
  $(id).replaceChildren(...options.map(([name, text]) => make('option', { value: name }, text ?? name)));
}

const firstComment = text => (text ?? '').split('\n').find(line => line.startsWith('# '))?.slice(2) ?? '';

function describe() {
  $('model-is').textContent = dropped ? `In place of it: ${dropped.name}` : models.get(value('model'))?.about ?? '';
  $('topology-is').textContent = firstComment(files[`topologies/clusters/${value('topology')}.yaml`]);
  $('grid-is').textContent = `${unit()} of a GPU by micro-batch and recomputation; choose a cell to take its settings`;
  $('curve-is').textContent = `${unit()} of a GPU; the band has 9 of 10 measured runs of such jobs`;
}

// The job stands behind the '#' of the address, so that a link gives it again.
function remember() {
  const given = FIELDS.filter(id => value(id) && !(dropped && id === 'model')).map(id => `${id}=${encodeURIComponent(value(id))}`);
  try {
    history.replaceState(null, '', `#${given.join('&')}`);
  } catch { /* some browsers refuse it to a file */ }
}

function recall() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const id of FIELDS)
    $(id).value = given.get(id) ?? FIRST[id] ?? $(id).value;
}

function take(settings) {
  for (const [id, text] of Object.entries(settings))
    $(id).value = text;
  answer();
}

async function takeFile(file) {
  if (!file)
    return;
  dropped = { name: /\.json$/.test(file.name) ? file.name.replace(/[^\w.-]/g, '_') : 'config.json', text: await file.text() };
  $('config-is').textContent = `${file.name}; choosing a model takes its place.`;
  answer();
}

function listFiles() {
  const names = folder => Object.keys(files).filter(name => name.startsWith(folder) && name.endsWith('.yaml'))
    .map(name => name.slice(folder.length, -5)).sort();
  for (const name of names('scenarios/models/')) {
    const text = files[`scenarios/models/${name}.yaml`], at = text.indexOf('\nsizes:'); // models that stand in one file
    if (at < 0 || /^name:/m.test(text.slice(0, at)))
      models.set(name, { text, about: firstComment(text) });
    for (const [, size, about] of at < 0 ? [] : text.slice(at).matchAll(/^ {2}([\w.-]+):.*?(?: # (.*))?$/gm))
      models.set(size, { text, about: about ?? '' });
  }
  fill('model', [...models.keys()].sort().map(name => [name]));
  fill('topology', names('topologies/clusters/').map(name => [name]));
  fill('stack', [['', 'plain kernels of PyTorch'], ...names('scenarios/stacks/').map(name => [name])]);
  for (const degree of ['tensor', 'pipeline', 'context', 'expert'])
    fill(degree, [1, 2, 4, 8, 16, 32].map(n => [String(n)]));
  fill('sizes', SIZES.map(n => [String(n)]));
  fill('lengths', [1024, 2048, 4096, 8192, 16384, 32768, 131072].map(n => [String(n)]));
}

function listen() {
  let wait = 0;
  $('job').addEventListener('submit', event => event.preventDefault());
  $('job').addEventListener('input', event => {
    if (event.target.id === 'config')
      return;
    if (event.target.id === 'model') {
      dropped = null;
      $('config').value = '';
      $('config-is').textContent = 'Choose it, or drop it anywhere here.';
    }
    clearTimeout(wait);
    if ($('job').checkValidity())
      wait = setTimeout(answer, event.target.tagName === 'SELECT' ? 0 : 200);
  });
  $('config').addEventListener('change', () => takeFile($('config').files[0]));
  for (const kind of ['dragenter', 'dragover', 'dragleave', 'drop'])
    document.addEventListener(kind, event => {
      event.preventDefault();
      $('job').classList.toggle('over', kind === 'dragenter' || kind === 'dragover');
      if (kind === 'drop')
        takeFile(event.dataTransfer.files[0]);
    });
  addEventListener('hashchange', () => { recall(); answer(); });
  $('search').addEventListener('click', () => search(turn, true));
  $('copy').addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText($('command').textContent);
      $('copy').textContent = 'Copied';
    } catch { // where a page may not
      getSelection().selectAllChildren($('command'));
      $('copy').textContent = 'Selected';
    }
    setTimeout(() => { $('copy').textContent = 'Copy'; }, 1500);
  });
  new IntersectionObserver(([{ isIntersecting }]) => { $('bar').hidden = isIntersecting; }).observe($('spoken'));
  let drawn = innerWidth;
  addEventListener('resize', () => {
    const point = curve.get(Number(value('gpus')));
    if (drawn === innerWidth || !point || point.status === 'wrong')
      return;
    drawn = innerWidth;
    showVerdict(point);
    showMemory(point);
    drawCurve();
  });
}

async function begin() {
  try {
    const [wasm, packed] = await Promise.all([unpack('wasm'), unpack('files')]);
    files = JSON.parse(new TextDecoder().decode(packed));
    listFiles();
    recall();
    listen();
    workers = new Workers(await WebAssembly.compile(wasm), files, Math.min(4, Math.max(2, navigator.hardwareConcurrency || 2)));
    await answer();
  } catch (error) {
    showNothing(`This browser cannot do it: ${error.message}. It needs WebAssembly and DecompressionStream (browsers since 2023).`);
  }
}

window.flopcast = { run: (args, own) => workers.run(args, own) }; // for tests, and whoever wants more than the form has
begin();
