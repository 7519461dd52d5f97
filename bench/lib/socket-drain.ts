/** Empties the UDP sockets of viewers with a small program that only counts, in place of this process. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { WebrtcViewer } from '../../test/fakes/webrtc-viewer.ts';

/** Lower descriptors of the drain are its standard streams. */
const FIRST_DESCRIPTOR = 3;

/** Compiles the program into `folder` and returns its path. */
export async function compileDrain(folder: string): Promise<string> {
  const program = join(folder, 'rtp-drain');
  await promisify(execFile)('g++', ['-O2', '-o', program, fileURLToPath(new URL('./rtp-drain.cc', import.meta.url))]);
  return program;
}

/** The sockets of some viewers, from `open` to `stop`. */
export class SocketDrain {
  readonly #program: ChildProcess;

  private constructor(program: ChildProcess) {
    this.#program = program;
  }

  /** Passes the sockets of `viewers`, which only count, to `program`; their own threads end. */
  static async open(program: string, viewers: readonly WebrtcViewer[]): Promise<SocketDrain> {
    const descriptors = udpDescriptors();
    const sockets = viewers.map(({ port }) => descriptors.get(port) ?? -1);
    const child = spawn(program, [String(FIRST_DESCRIPTOR), String(sockets.length)], { stdio: ['pipe', 'pipe', 'inherit', ...sockets] });
    await once(child, 'spawn');
    for (const viewer of viewers) viewer.close(true);
    return new SocketDrain(child);
  }

  /** Packets received by each viewer since `open`, in order of the viewers. */
  async stop(): Promise<number[]> {
    this.#program.stdin?.end();
    const lines = this.#program.stdout === null ? '' : await text(this.#program.stdout);
    return lines.trim().split('\n').map(Number);
  }
}

/** Descriptors of this process's UDP sockets by local port. */
function udpDescriptors(): Map<number, number> {
  const ports = new Map<string, number>();
  for (const line of readFileSync('/proc/self/net/udp', 'utf8').trim().split('\n').slice(1)) {
    const fields = line.trim().split(/\s+/);
    ports.set(fields[9] ?? '', Number.parseInt(fields[1]?.split(':')[1] ?? '', 16));
  }
  const found = new Map<number, number>();
  for (const name of readdirSync('/proc/self/fd')) {
    const inode = /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/self/fd/${name}`))?.[1];
    const port = inode === undefined ? undefined : ports.get(inode);
    if (port !== undefined) found.set(port, Number(name));
  }
  return found;
}

/** Empty for a descriptor that has been closed, such as that of the folder itself. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
