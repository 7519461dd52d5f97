/** Finds the external programs of tests and benches, and installs missing ones from Debian packages if it may. */
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import path from 'node:path';

/** The purpose of a program. */
export type Purpose = 'test' | 'bench';

interface Tool {
  readonly command: string;
  /** Debian package of the program; several are separated by blanks. */
  readonly package: string;
  readonly purposes: readonly Purpose[];
  /** A command line that succeeds if the tool exists, for tools that are not on PATH. */
  readonly check?: readonly string[];
  /** Another program replaces it if it is unavailable, at a higher cost. */
  readonly isOptional?: boolean;
}

const TOOLS: readonly Tool[] = [
  { command: 'ffmpeg', package: 'ffmpeg', purposes: ['test', 'bench'] },
  { command: 'ffprobe', package: 'ffmpeg', purposes: ['test', 'bench'] },
  { command: 'srt-live-transmit', package: 'srt-tools', purposes: ['test', 'bench'] },
  { command: 'chromium', package: 'chromium', purposes: ['test', 'bench'] },
  { command: 'chromium-headless-shell', package: 'chromium-headless-shell', purposes: ['test'], isOptional: true },
  {
    command: 'gst-rtsp-server',
    package:
      'gir1.2-gst-rtsp-server-1.0 python3-gi gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad gstreamer1.0-plugins-ugly',
    purposes: ['test'],
    check: ['/usr/bin/python3', '-c', 'import gi; gi.require_version("GstRtspServer", "1.0"); from gi.repository import GstRtspServer'],
  },
  { command: 'gst-launch-1.0', package: 'gstreamer1.0-tools gstreamer1.0-libav', purposes: ['test'] },
  { command: 'vlc', package: 'vlc-bin vlc-plugin-base vlc-plugin-access-extra', purposes: ['test'] },
  { command: 'ip', package: 'iproute2', purposes: ['test', 'bench'] },
  { command: 'curl', package: 'curl', purposes: ['test'] },
  { command: 'jq', package: 'jq', purposes: ['test'] },
  { command: 'zsh', package: 'zsh', purposes: ['test'] },
  { command: 'openssl', package: 'openssl', purposes: ['test'] },
  { command: 'nginx', package: 'nginx-light', purposes: ['test', 'bench'] },
  {
    command: 'nginx with RTMP',
    package: 'libnginx-mod-rtmp',
    purposes: ['test'],
    check: ['/usr/bin/test', '-e', '/usr/lib/nginx/modules/ngx_rtmp_module.so'],
  },
  { command: 'docker-compose', package: 'docker-compose', purposes: ['test'] },
  { command: 'redis-server', package: 'redis-server', purposes: ['test'] },
  { command: 'promtool', package: 'prometheus', purposes: ['test'] },
  { command: 'prometheus', package: 'prometheus', purposes: ['test'] },
  { command: 'wrk', package: 'wrk', purposes: ['bench'] },
  { command: 'h2load', package: 'nghttp2-client', purposes: ['bench'] },
];

/** Folders of daemons, which are often missing in the PATH of ordinary users. */
const SYSTEM_FOLDERS = ['/usr/sbin', '/sbin', '/usr/local/sbin'];

/** Absolute path of a program on PATH (or in the system's sbin folders), or null. */
export function findProgram(command: string): string | null {
  const folders = (process.env['PATH'] ?? '').split(path.delimiter).filter((folder) => folder !== '');
  for (const folder of [...folders, ...SYSTEM_FOLDERS]) {
    const candidate = path.join(folder, command);
    try {
      accessSync(candidate, constants.X_OK);
      return candidate;
    } catch {
      // Not in this folder.
    }
  }
  return null;
}

/** As `findProgram`, but throws an error with the command that installs the program. */
export function requireProgram(command: string): string {
  const found = findProgram(command);
  if (found !== null) return found;
  const tool = TOOLS.find((candidate) => candidate.command === command);
  throw new Error(`${command} is not on PATH; install it with: apt-get install ${tool?.package ?? command}`);
}

/**
 * Makes the programs for `purpose` available. Installs missing ones when run as root or with a password-less sudo; otherwise prints the
 * command. Returns the commands that are still missing.
 */
export function ensureTools(purpose: Purpose): readonly string[] {
  const wanted = TOOLS.filter((tool) => tool.purposes.includes(purpose));
  const missing = wanted.filter((tool) => !isThere(tool));
  if (missing.length === 0) return [];
  const required = missing.filter(({ isOptional }) => isOptional !== true);
  const prefix = aptPrefix();
  console.log(`missing programs: ${missing.map((tool) => tool.command).join(', ')}`);
  if (prefix === null) {
    console.log(`install them with: sudo apt-get ${installOf(missing).join(' ')}`);
    return required.map((tool) => tool.command);
  }
  if (required.length > 0) {
    apt(prefix, ['update']);
    apt(prefix, installOf(required));
  }
  // Without an update of the package lists: a package that the distribution lacks would cost a wait for the network in every run.
  for (const tool of missing) if (tool.isOptional === true) apt(prefix, installOf([tool]));
  return required.filter((tool) => !isThere(tool)).map((tool) => tool.command);
}

function installOf(tools: readonly Tool[]): string[] {
  const packages = [...new Set(tools.flatMap((tool) => tool.package.split(' ')))];
  return ['install', '-y', '--no-install-recommends', ...packages];
}

function isThere({ command, check }: Tool): boolean {
  if (check === undefined) return findProgram(command) !== null;
  const [program = '', ...args] = check;
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}

/** Prefix of `apt-get`: empty as root, sudo if it needs no password, null if installing is not permitted. */
function aptPrefix(): readonly string[] | null {
  if (findProgram('apt-get') === null) return null;
  if (process.getuid?.() === 0) return [];
  if (findProgram('sudo') === null) return null;
  return spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0 ? ['sudo', '-n'] : null;
}

function apt(prefix: readonly string[], args: readonly string[]): void {
  const line = [...prefix, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-q', '-o', 'Acquire::Retries=3', ...args];
  console.log(`> ${line.join(' ')}`);
  const [command = '', ...rest] = line;
  const result = spawnSync(command, rest, { stdio: ['ignore', 'inherit', 'inherit'] });
  if (result.status !== 0) console.log(`apt-get ${args[0] ?? ''} failed with ${result.status ?? result.signal ?? 'no status'}`);
}

if (import.meta.main) {
  const purpose: Purpose = process.argv.includes('bench') ? 'bench' : 'test';
  const missing = ensureTools(purpose);
  if (missing.length > 0) process.exitCode = 1;
  else console.log(`all programs for ${purpose} are there`);
}
