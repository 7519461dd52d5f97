/**
 * CPU time per request of our delivery against nginx, on the loopback: a playlist, a part and a segment,
 * keep-alive connections driven by `wrk`. Prints a table and one line of JSON.
 *
 *     BENCH_SECONDS=5 BENCH_REPEATS=3 BENCH_CONNECTIONS=1,4 node bench/http-origin-micro.ts
 */
import { execFile } from 'node:child_process';
import { createServer } from 'node:net';
import { promisify } from 'node:util';
import { FILES, type Origin, startMillrace, startNginx } from './origins.ts';
import { treeCpu } from './process-cpu.ts';

const run = promisify(execFile);

const SECONDS = Number(process.env['BENCH_SECONDS'] ?? '5');
const REPEATS = Number(process.env['BENCH_REPEATS'] ?? '3');
const CONNECTIONS = (process.env['BENCH_CONNECTIONS'] ?? '1,4').split(',').map(Number);
const WARM_UP_SECONDS = 1;

/** Most times nginx's CPU that a request may cost. */
const BUDGETS: Record<keyof typeof FILES, number> = { 'list.m3u8': 2.5, 'part.m4s': 1.5, 'segment.m4s': 1.0 };

interface Row {
  readonly file: keyof typeof FILES;
  readonly connections: number;
  readonly server: string;
  /** Median microseconds of CPU per request. */
  readonly cpu: number;
  readonly requestsPerSecond: number;
}

async function load(origin: Origin, file: string, connections: number, seconds: number): Promise<number> {
  const url = `http://127.0.0.1:${origin.port}/app/stream/${file}`;
  const { stdout } = await run('wrk', ['-t1', `-c${connections}`, `-d${seconds}s`, url]);
  const requests = Number(/(\d+) requests in/.exec(stdout)?.[1] ?? '0');
  if (requests === 0 || stdout.includes('Non-2xx')) throw new Error(`${origin.name} did not serve ${file}:\n${stdout}`);
  return requests;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

async function measure(origins: readonly Origin[], file: keyof typeof FILES, connections: number): Promise<Row[]> {
  const samples = new Map<Origin, { cpu: number; rate: number }[]>(origins.map((origin) => [origin, []]));
  // Servers take turns, so that a noisy minute hits all of them.
  for (let repeat = 0; repeat < REPEATS; repeat += 1) {
    for (const origin of origins) {
      if (repeat === 0) await load(origin, file, connections, WARM_UP_SECONDS);
      const before = treeCpu(origin.pid);
      const requests = await load(origin, file, connections, SECONDS);
      samples.get(origin)?.push({ cpu: (treeCpu(origin.pid) - before) / requests, rate: requests / SECONDS });
    }
  }
  return origins.map((origin) => {
    const taken = samples.get(origin) ?? [];
    return {
      file,
      connections,
      server: origin.name,
      cpu: median(taken.map(({ cpu }) => cpu)),
      requestsPerSecond: Math.round(median(taken.map(({ rate }) => rate))),
    };
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}

function print(rows: readonly Row[]): void {
  const line = (cells: readonly (string | number)[]): string => cells.map((cell, n) => String(cell).padEnd(n === 2 ? 20 : 13)).join('');
  process.stdout.write(`${line(['file', 'connections', 'server', 'µs/request', 'requests/s', '× nginx', 'budget'])}\n`);
  for (const row of rows) {
    // The better of the two ways nginx can send.
    const best = Math.min(
      ...rows
        .filter((other) => other.file === row.file && other.connections === row.connections && other.server.startsWith('nginx'))
        .map(({ cpu }) => cpu),
    );
    const ours = row.server.startsWith('millrace');
    const cells = [
      row.file,
      row.connections,
      row.server,
      row.cpu.toFixed(1),
      row.requestsPerSecond,
      (row.cpu / best).toFixed(2),
      ours ? BUDGETS[row.file] : '',
    ];
    process.stdout.write(`${line(cells)}\n`);
  }
  process.stdout.write(`${JSON.stringify(rows)}\n`);
}

const origins = [
  await startMillrace(1),
  await startMillrace(0),
  await startNginx('on', await freePort()),
  await startNginx('off', await freePort()),
];
try {
  const rows: Row[] = [];
  for (const file of Object.keys(FILES) as (keyof typeof FILES)[]) {
    for (const connections of CONNECTIONS) rows.push(...(await measure(origins, file, connections)));
  }
  print(rows);
} finally {
  await Promise.all(origins.map((origin) => origin.close()));
}
