/** Load by wrk: one thread, keep-alive connections. */
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
}

const DEFAULT_CONNECTIONS = 16;

/** Sends GET requests for `seconds`; throws when an answer was not a success or a connection failed. */
export async function load(options: LoadOptions): Promise<Load> {
  const headers = (options.headers ?? []).flatMap((line) => ['-H', line]);
  const size = ['-t1', `-c${options.connections ?? DEFAULT_CONNECTIONS}`, `-d${Math.ceil(options.seconds)}s`];
  const child = new Child(requireProgram('wrk'), [...size, ...headers, options.url]);
  const { code } = await child.exited;
  const output = child.stdout;
  if (code !== 0) throw new Error(`wrk ${options.url}: ${child.output}`);
  if (/Non-2xx|Socket errors/.test(output)) throw new Error(`wrk ${options.url} met errors:\n${output}`);
  const requests = Number(/(\d+) requests in/.exec(output)?.[1] ?? 0);
  if (requests === 0) throw new Error(`wrk ${options.url} finished no request:\n${output}`);
  return { requests, perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(output)?.[1] ?? 0) };
}
