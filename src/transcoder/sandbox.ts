/**
 * The sandbox of a transcoder process, which decodes untrusted media with a library of millions of lines of C. The program `native/sandbox`
 * starts it without network, without new privileges and with only the files that it needs to run, as far as the kernel can enforce that
 * (Landlock, seccomp).
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Logger } from '../util/logger.ts';

/** Disables the sandbox, for machines whose drivers need forbidden operations. */
const OVERRIDE = 'MILLRACE_SANDBOX';
const PROGRAM = fileURLToPath(new URL('../../native/build/millrace-sandbox', import.meta.url));
const PROBE_DEADLINE_MS = 5000;

/** Variables used by codecs, drivers or the runtime. All others, such as tokens, are not passed on. */
const PASSED_VARIABLES = /^(?:PATH|LANG|LC_\w+|TZ|LD_LIBRARY_PATH|TERM|XDG_RUNTIME_DIR)$/;
const PASSED_PREFIXES =
  /^(?:LIBVA|VDPAU|CUDA|NVIDIA|NV|MFX|ONEVPL|GALLIUM|MESA|DRI|ZE|ZES|NEO|IGD|AMD|RADV|ROCR|HSA|HIP|OCL|OPENCL|VK|EGL|SVT|FONTCONFIG)_/;

/** System folders of libraries, drivers and their settings; missing ones are skipped. */
const SYSTEM_FOLDERS = ['/usr', '/lib', '/lib32', '/lib64', '/bin', '/opt', '/nix/store', '/sys'];
const SYSTEM_FILES = [
  ...['/etc/ld.so.cache', '/etc/ld.so.preload', '/etc/localtime', '/etc/ssl/openssl.cnf', '/etc/nsswitch.conf', '/etc/os-release'],
  ...['/etc/OpenCL', '/etc/vulkan', '/etc/glvnd', '/etc/nvidia', '/etc/drirc', '/etc/fonts', '/etc/igfx_user_feature.txt'],
  ...[
    '/proc/self',
    '/proc/cpuinfo',
    '/proc/meminfo',
    '/proc/version',
    '/proc/stat',
    '/proc/driver',
    '/dev/urandom',
    '/dev/random',
    '/dev/zero',
  ],
];
const DEVICES = [
  '/dev/null',
  '/dev/dri',
  '/dev/kfd',
  ...Array.from({ length: 16 }, (_, device) => `/dev/nvidia${device}`),
  '/dev/nvidiactl',
  '/dev/nvidia-uvm',
  '/dev/nvidia-caps',
];
/** The folders of the program loader. */
const LOADER_FOLDERS = ['/lib', '/lib64', '/usr/lib', '/usr/lib64', '/nix/store'];

/** A program and its arguments. */
export interface CommandLine {
  readonly file: string;
  readonly args: readonly string[];
}

/** The variables a transcoder process gets of the server's. */
export function environmentOf(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const passed = Object.entries(environment).filter(([name]) => PASSED_VARIABLES.test(name) || PASSED_PREFIXES.test(name));
  return Object.fromEntries(passed);
}

/**
 * How Node.js runs the file `entry` in the sandbox; outside of it where there is none. `compiled`: folder of compiled code, null without.
 * `memory`: bytes of data that it may have; null sets no limit.
 */
export function sandboxed(entry: URL, compiled: string | null, memory: number | null = null): CommandLine {
  const script = fileURLToPath(entry);
  if (!isThere()) return { file: process.execPath, args: [script] };
  const readable = [...SYSTEM_FOLDERS, ...SYSTEM_FILES, ...codeFolders(script), ...(compiled === null ? [] : [compiled])];
  const args = [
    ...readable.flatMap((place) => ['--read', place]),
    ...DEVICES.flatMap((place) => ['--use', place]),
    ...[process.execPath, ...LOADER_FOLDERS].flatMap((place) => ['--execute', place]),
    ...(memory === null ? [] : ['--memory', String(memory)]),
  ];
  return { file: PROGRAM, args: [...args, '--', process.execPath, script] };
}

/** Logs the restrictions of transcoder processes on this machine; a warning if some are missing. */
export async function logSandbox(logger: Logger): Promise<void> {
  const { held, missing, why } = await protection();
  const fields = { sandbox: held };
  if (missing.length === 0)
    logger.info(fields, 'transcoder processes run in a sandbox: no network, no new privileges, no files but their own');
  else logger.warn(fields, `transcoder processes are not protected against: ${missing.join(', ')} (${why})`);
}

/** The restrictions of transcoder processes on this machine, and the missing ones with the reason. */
export async function protection(): Promise<{
  readonly held: readonly string[];
  readonly missing: readonly string[];
  readonly why: string;
}> {
  const held = isThere() ? await probe() : [];
  const missing = ['no-new-privileges', 'files', 'network'].filter((what) => !held.includes(what));
  const why = process.env[OVERRIDE] === 'off' ? `switched off by ${OVERRIDE}` : 'the addon was not built, or this kernel cannot do it';
  return { held, missing, why };
}

function isThere(): boolean {
  return process.env[OVERRIDE] !== 'off' && existsSync(PROGRAM);
}

async function probe(): Promise<readonly string[]> {
  try {
    const { stdout } = await promisify(execFile)(PROGRAM, ['--probe'], { timeout: PROBE_DEADLINE_MS });
    return stdout.split('\n').filter((word) => word !== '');
  } catch {
    return [];
  }
}

/** The files of the program: its source folder, `package.json`, and the folders of modules. */
function codeFolders(script: string): string[] {
  const own = path.dirname(path.dirname(path.dirname(script)));
  const modules = createRequire(import.meta.url).resolve.paths('node-av') ?? [];
  return [own, path.join(path.dirname(own), 'package.json'), ...modules];
}
