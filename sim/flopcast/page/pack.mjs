// node pack.mjs OUT COMMIT.txt VERSION PROGRAM.js PROGRAM.wasm ROOT: one file of page.html, its style and scripts, the program, and
// the files of flopcast that it reads. Program and files are gzip in base64: a page opened from a disk may not load others.
import { readFileSync, writeFileSync, readdirSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const [out, commitFile, version, script, wasm, root] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const part = name => readFileSync(join(here, name), 'utf8');

const files = {};
for (const folder of ['topologies', 'topologies/clusters', 'topologies/nodes', 'topologies/gpus', 'topologies/fitted', 'scenarios',
  'scenarios/models', 'scenarios/stacks', 'scenarios/huggingface'])
  for (const name of readdirSync(join(root, folder)).filter(name => /\.yaml$|^aliases\.txt$/.test(name)))
    files[`${folder}/${name}`] = readFileSync(join(root, folder, name), 'utf8');

const pack = bytes => gzipSync(bytes, { level: 9 }).toString('base64');
const inScript = text => text.replaceAll('</script', '<\\/script');
const parts = {
  STYLE: part('page.css'),
  SCRIPT: inScript(part('page.js')),
  WORKER: inScript(readFileSync(script, 'utf8') + '\n' + part('worker.js')),
  WASM: pack(readFileSync(wasm)),
  FILES: pack(JSON.stringify(files)),
  VERSION: version,
  COMMIT: readFileSync(commitFile, 'utf8').trim(),
};
writeFileSync(out, part('page.html').replace(/<!--(STYLE|SCRIPT|WORKER|WASM|FILES|VERSION|COMMIT)-->/g, (_, name) => parts[name]));
