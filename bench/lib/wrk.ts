/** Load by wrk: one thread, keep-alive connections. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { Child } from '../../test/harness/child.ts';

export interface Load {
  readonly requests: number;
  readonly perSecond: number;
}

export interface LoadOptions {
  readonly url: string;
  readonly seconds: number;
  readonly connections?: number;
  /** Complete header lines. */
  readonly headers?: readonly string[];
  /** Paths with queries that are requested in turn, in place of the path of `url`. */
  readonly targets?: readonly string[];
}

const DEFAULT_CONNECTIONS = 16;

/** Sends GET requests for `seconds`; throws when an answer is not a success or a connection fails. */
export async function load(options: LoadOptions): Promise<Load> {
  if (options.targets === undefined) return await run(options, []);
  const folder = mkdtempSync(join(tmpdir(), 'millrace-wrk-'));
  try {
    return await run(options, ['-s', scriptFor(options.targets, folder)]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The requests are prepared before the first is sent. */
function scriptFor(targets: readonly string[], folder: string): string {
  const [list, script] = [join(folder, 'targets'), join(folder, 'requests.lua')];
  writeFileSync(list, targets.join('\n'));
  const lines = [
    'local requests, at = {}, 0',
    'function init()',
    `  for target in io.lines(${JSON.stringify(list)}) do requests[#requests + 1] = wrk.format("GET", target) end`,
    'end',
    'function request()',
    '  at = at % #requests + 1',
    '  return requests[at]',
    'end',
  ];
  writeFileSync(script, lines.join('\n'));
  return script;
}

async function run(options: LoadOptions, more: readonly string[]): Promise<Load> {
  const headers = (options.headers ?? []).flatMap((line) => ['-H', line]);
  const size = ['-t1', `-c${options.connections ?? DEFAULT_CONNECTIONS}`, `-d${Math.ceil(options.seconds)}s`];
  const child = new Child(requireProgram('wrk'), [...size, ...more, ...headers, options.url]);
  const { code } = await child.exited;
  const output = child.stdout;
  if (code !== 0) throw new Error(`wrk ${options.url}: ${child.output}`);
  if (/Non-2xx|Socket errors/.test(output)) throw new Error(`wrk ${options.url} met errors:\n${output}`);
  const requests = Number(/(\d+) requests in/.exec(output)?.[1] ?? 0);
  if (requests === 0) throw new Error(`wrk ${options.url} finished no request:\n${output}`);
  return { requests, perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(output)?.[1] ?? 0) };
}
