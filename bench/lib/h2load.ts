/** Load over HTTP/2 by h2load of nghttp2: one thread, TLS, `streams` concurrent requests per connection. */
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { Child } from '../../test/harness/child.ts';
import type { Load } from './wrk.ts';

const DEFAULT_CONNECTIONS = 16;

export interface Http2LoadOptions {
  readonly url: string;
  readonly seconds: number;
  readonly connections?: number;
  readonly streams?: number;
  /** Complete header lines. */
  readonly headers?: readonly string[];
}

/** Sends GET requests for `seconds`; throws when an answer is not a success or a connection fails. */
export async function loadHttp2({
  url,
  seconds,
  connections = DEFAULT_CONNECTIONS,
  streams = 1,
  headers = [],
}: Http2LoadOptions): Promise<Load> {
  const size = ['-t1', `-c${connections}`, `-m${streams}`, `-D${Math.ceil(seconds)}`, '-w24', '-W26'];
  const child = new Child(requireProgram('h2load'), [...size, ...headers.flatMap((line) => ['-H', line]), url]);
  const { code } = await child.exited;
  const output = child.stdout;
  const [, done = '0', failed = '1', errored = '1'] = /, (\d+) succeeded, (\d+) failed, (\d+) errored/.exec(output) ?? [];
  if (code !== 0 || !/Application protocol: h2/.test(output)) throw new Error(`h2load ${url}: ${child.output}`);
  if (failed !== '0' || errored !== '0' || done === '0') throw new Error(`h2load ${url} met errors:\n${output}`);
  return { requests: Number(done), perSecond: Number(done) / seconds };
}
