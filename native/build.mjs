// Compiles the addon with the installed C++ compiler. Run by `npm install`, which it never fails: without a compiler or node's headers, the
// server reports that at its start and sends from JavaScript, at a multiple of the cost.
//
//   node native/build.mjs              build/millrace.node, and build/millrace-sandbox, which starts transcoder processes
//   node native/build.mjs --sanitize   build/millrace-sanitized.node, with AddressSanitizer and UndefinedBehaviorSanitizer
//   node native/build.mjs --sanitize=thread   build/millrace-sanitized-thread.node, with ThreadSanitizer
//   node native/build.mjs --strict     exits with 1 when it cannot be built
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDER = path.dirname(fileURLToPath(import.meta.url));
const SOURCES = path.join(FOLDER, 'src');
const SANDBOX = path.join(FOLDER, 'sandbox/sandbox.cc');
const OUTPUT = path.join(FOLDER, 'build');
// A busy machine takes many times as long as an idle machine.
const DEADLINE_MS = 300_000;
/** Sanitized code takes several times as long to compile. */
const SANITIZED_DEADLINE_MS = 1_500_000;

/** Sanitizers and name of the addon, by the value of `--sanitize`. */
const SANITIZERS = {
  '--sanitize': { flag: 'address,undefined', name: 'millrace-sanitized.node' },
  '--sanitize=thread': { flag: 'thread', name: 'millrace-sanitized-thread.node' },
};
const sanitizer = Object.entries(SANITIZERS).find(([option]) => process.argv.includes(option))?.[1];
const strict = process.argv.includes('--strict');

/** Folders with `node_api.h` and OpenSSL's headers, the likeliest first. */
function findHeaders() {
  const prefix = path.dirname(path.dirname(process.execPath));
  const nodedir = process.env.npm_config_nodedir ?? process.env.NODEDIR;
  const places = [
    ...(nodedir ? [path.join(nodedir, 'include/node')] : []),
    path.join(prefix, 'include/node'),
    '/usr/include/node',
    '/usr/local/include/node',
  ];
  return places.find((place) => existsSync(path.join(place, 'node_api.h')) && existsSync(path.join(place, 'openssl/ssl.h')));
}

function run(program, args, signal) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'], signal });
    let errors = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      errors += text;
    });
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve(undefined);
      else reject(new Error(errors.trim() || `${program} ended with ${code}`));
    });
  });
}

/** Puts a file into the folder of results under a new inode: a running server keeps the file it has loaded. */
async function put(file, name, signal) {
  mkdirSync(OUTPUT, { recursive: true });
  const target = path.join(OUTPUT, name);
  const beside = `${target}.${process.pid}`;
  await run('cp', [file, beside], signal);
  renameSync(beside, target);
  return target;
}

/** Flags that make our mistakes harder to exploit. Compilers and machines support different subsets. */
const HARDENING = [
  ['-D_FORTIFY_SOURCE=3', '-D_FORTIFY_SOURCE=2'],
  ['-fstack-protector-strong', '-fstack-protector'],
  ['-fstack-clash-protection'],
  ['-fcf-protection', '-mbranch-protection=standard'],
  ['-Wl,-z,relro,-z,now'],
  ['-Wl,-z,noexecstack'],
];

/** From each row of `HARDENING`, the first flags with which `compiler` compiles clean code without a warning. */
async function hardening(compiler, base, work, signal) {
  const trial = path.join(work, 'trial.cc');
  writeFileSync(trial, '#include <cstring>\nextern "C" void trial(char* to, const char* from) { strcpy(to, from); }\n');
  const rows = HARDENING.map(async (row, n) => {
    for (const flag of row) {
      // Replaces a _FORTIFY_SOURCE that the distribution predefines.
      const flags = flag.startsWith('-D_FORTIFY') ? ['-U_FORTIFY_SOURCE', flag] : [flag];
      const args = [...base, '-Werror', ...flags, '-shared', trial, '-o', path.join(work, `trial-${n}.so`)];
      const isTaken = await run(compiler, args, signal).then(
        () => true,
        () => false,
      );
      if (isTaken) return flags;
    }
    return [];
  });
  return (await Promise.all(rows)).flat();
}

async function build() {
  if (process.platform !== 'linux') throw new Error(`the addon is for Linux, this is ${process.platform}`);
  if (process.config.variables.node_shared_openssl) throw new Error('this node does not carry its own OpenSSL');
  const headers = findHeaders();
  if (headers === undefined) throw new Error("node's headers were not found; --nodedir of npm names the folder that has include/node");
  const compiler = process.env.CXX ?? 'g++';
  const flags = ['-std=c++17', '-fPIC', '-pthread', '-Wall', '-Wextra', '-Wno-deprecated-declarations'];
  flags.push('-DNAPI_VERSION=8', '-DNODE_GYP_MODULE_NAME=millrace', `-I${headers}`);
  if (sanitizer) flags.push('-O1', '-g', '-fno-omit-frame-pointer', `-fsanitize=${sanitizer.flag}`);
  else flags.push('-O2', '-fvisibility=hidden');
  const work = mkdtempSync(path.join(tmpdir(), 'millrace-native-'));
  const signal = AbortSignal.timeout(sanitizer ? SANITIZED_DEADLINE_MS : DEADLINE_MS);
  try {
    const hard = sanitizer ? [] : await hardening(compiler, ['-O2', '-fPIC', '-Wall'], work, signal);
    flags.push(...hard);
    const names = readdirSync(SOURCES).filter((name) => name.endsWith('.cc'));
    const queue = [...names];
    const compile = async () => {
      for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
        await run(compiler, [...flags, '-c', path.join(SOURCES, name), '-o', path.join(work, `${name}.o`)], signal);
      }
    };
    await Promise.all(Array.from({ length: availableParallelism() }, compile));
    const linked = path.join(work, 'millrace.node');
    const libraries = sanitizer ? [] : ['-static-libstdc++', '-static-libgcc'];
    await run(compiler, ['-shared', ...flags, ...names.map((name) => path.join(work, `${name}.o`)), ...libraries, '-o', linked], signal);
    if (!sanitizer) {
      const launcher = path.join(work, 'millrace-sandbox');
      await run(compiler, ['-std=c++17', '-O2', '-Wall', '-Wextra', ...hard, ...libraries, SANDBOX, '-o', launcher], signal);
      await put(launcher, 'millrace-sandbox', signal);
    }
    return await put(linked, sanitizer?.name ?? 'millrace.node', signal);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

const startedAt = performance.now();
try {
  const target = await build();
  console.log(`${path.relative(process.cwd(), target)} built in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
} catch (error) {
  console.warn(`The native addon was not built: ${error instanceof Error ? error.message : error}`);
  console.warn('Millrace works without it, but WebRTC then costs several times the CPU.');
  if (strict) process.exitCode = 1;
}
