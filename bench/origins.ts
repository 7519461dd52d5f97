/** The servers that the HTTP micro-benchmark compares, each as a child process with the same three files. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface Origin {
  readonly name: string;
  readonly pid: number;
  readonly port: number;
  close(): Promise<void>;
}

/** Name and bytes of what is served under `/app/stream/`. */
export const FILES = { 'list.m3u8': 5_000, 'part.m4s': 160_000, 'segment.m4s': 2_000_000 } as const;

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  await exit;
}

/** Our server with one egress worker (1) or serving from its main thread (0). */
export async function startMillrace(threads: 0 | 1): Promise<Origin> {
  const script = fileURLToPath(new URL('./origin-server.ts', import.meta.url));
  const child = spawn(process.execPath, [script, String(threads)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(createInterface(child.stdout), 'line');
  return {
    name: threads === 0 ? 'millrace main' : 'millrace worker',
    pid: child.pid ?? 0,
    port: Number(line),
    close: () => stopped(child),
  };
}

/** nginx with one worker, serving from tmpfs. */
export async function startNginx(sendfile: 'on' | 'off', port: number): Promise<Origin> {
  const folder = mkdtempSync(join(process.env['BENCH_TMPFS'] ?? '/dev/shm', 'millrace-bench-'));
  const root = join(folder, 'root');
  mkdirSync(join(root, 'app', 'stream'), { recursive: true });
  for (const [name, size] of Object.entries(FILES)) writeFileSync(join(root, 'app', 'stream', name), Buffer.alloc(size, 'v'));
  const lines = [
    ...(process.getuid?.() === 0 ? ['user root;'] : []),
    'daemon off; worker_processes 1;',
    `pid ${join(folder, 'pid')}; error_log ${join(folder, 'error.log')};`,
    'events { worker_connections 1024; }',
    `http { access_log off; sendfile ${sendfile}; tcp_nopush on; keepalive_requests 100000000;`,
    `open_file_cache max=100 inactive=60s; types { video/mp4 m4s; application/vnd.apple.mpegurl m3u8; }`,
    `server { listen 127.0.0.1:${port}; root ${root}; } }`,
  ];
  writeFileSync(join(folder, 'nginx.conf'), lines.join('\n'));
  const env = { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin` };
  const child = spawn('nginx', ['-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')], { stdio: 'inherit', env });
  await reachable(port);
  const close = async (): Promise<void> => {
    await stopped(child);
    rmSync(folder, { recursive: true, force: true });
  };
  return { name: `nginx sendfile ${sendfile}`, pid: child.pid ?? 0, port, close };
}

/** Waits until somebody listens on `port`. */
async function reachable(port: number): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const socket = connect(port, '127.0.0.1');
    const open = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true));
      socket.once('error', () => resolve(false));
    });
    socket.destroy();
    if (open) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`nobody listens on port ${port}`);
}
