// One worker: an instance of the program, which does one command after the other. createFlopcast() is emscripten's; it stands
// before this text in the same Blob. Messages in: {module, files, folder}, once, folder: where the files are to lie; {id, args,
// own}: a command, own: files by name that lie in its working folder. Out: {id, status, stdout, stderr}.
'use strict';

let made = null, again = null;

async function make({ module, files, folder }) {
  const output = { stdout: [], stderr: [] };
  const program = await createFlopcast({ // bytes: such a stream is a pipe to the program, and no terminal
    stdout: byte => output.stdout.push(byte),
    stderr: byte => output.stderr.push(byte),
    thisProgram: 'flopcast',
    instantiateWasm: (imports, done) => {
      WebAssembly.instantiate(module, imports).then(instance => done(instance));
      return {};
    },
    preRun: [program => { program.ENV.FLOPCAST_DATA = folder; program.ENV.COLUMNS = '80'; program.ENV.FLOPCAST_SILENT_S = '3600'; }],
  });
  for (const [name, text] of Object.entries(files)) {
    const path = `${folder}/${name}`;
    program.FS.mkdirTree(path.slice(0, path.lastIndexOf('/')));
    program.FS.writeFile(path, text);
  }
  program.FS.mkdirTree('/home');
  program.FS.chdir('/home');
  return { program, output };
}

// argp leaves by exit(), which unwinds past the C stack: its pointer is put back.
function run({ program, output }, args, own) {
  for (const [name, text] of Object.entries(own || {}))
    program.FS.writeFile(name, text);
  output.stdout.length = output.stderr.length = 0;
  const stack = program.stackSave();
  const status = program.callMain(args);
  program._fflush(0);
  program.stackRestore(stack);
  const text = bytes => new TextDecoder().decode(Uint8Array.from(bytes));
  return { status, stdout: text(output.stdout), stderr: text(output.stderr).trim() };
}

onmessage = async ({ data }) => {
  if (data.module) {
    again = () => { made = make(data); };
    again();
    return;
  }
  try {
    postMessage({ id: data.id, ...run(await made, data.args, data.own) });
  } catch (error) { // a fault, or what the page has not: nothing of that instance is to be trusted
    again();
    postMessage({ id: data.id, status: 1, stdout: '', stderr: `flopcast: ${error.message || error}` });
  }
};
