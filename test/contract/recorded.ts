/** Exchanges recorded from the reference server, read from the fixtures. */
import { readdirSync, readFileSync } from 'node:fs';

/** A recorded request with its answer. Numbers give the order. */
export interface Exchange {
  readonly n: number;
  readonly name: string;
  readonly request: { readonly line: string; readonly headers?: readonly string[]; readonly body?: Body };
  /** `status` is null when the reference server closed the connection without an answer. */
  readonly response: { readonly status: number | null; readonly headers?: readonly string[]; readonly body?: Body };
}

type Body = { readonly text: string } | { readonly base64: string };

const PLAYBACK_HOSTS = ['Host: 127.0.0.1:3333', 'Host: 127.0.0.1:3334'];
const FOLDER = new URL('../fixtures/recorded-answers/', import.meta.url);

/** All recorded exchanges with the API, in order. */
export function recordedExchanges(): Exchange[] {
  return allExchanges().filter((exchange) => !isPlayback(exchange));
}

/** All recorded exchanges with viewer ports, in order. */
export function recordedPlayback(): Exchange[] {
  return allExchanges().filter(isPlayback);
}

function isPlayback({ request }: Exchange): boolean {
  return request.headers?.some((line) => PLAYBACK_HOSTS.includes(line)) === true;
}

function allExchanges(): Exchange[] {
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith('.jsonl'))
    .sort()
    .flatMap((file) => readFileSync(new URL(file, FOLDER), 'utf8').trim().split('\n'))
    .map((line) => JSON.parse(line) as Exchange);
}

/** The bytes of a recorded request, which asks the server to close the connection. */
export function requestBytes({ request: { line, headers = [], body } }: Exchange): Buffer {
  const head = [line, ...headers, 'Connection: close'].join('\r\n');
  const content =
    body === undefined ? Buffer.alloc(0) : 'text' in body ? Buffer.from(body.text, 'utf8') : Buffer.from(body.base64, 'base64');
  return Buffer.concat([Buffer.from(`${head}\r\n\r\n`, 'latin1'), content]);
}

/** The text of a recorded answer with this product's name. */
export function answerText({ response: { body } }: Exchange): string {
  if (body === undefined) return '';
  const text = 'text' in body ? body.text : Buffer.from(body.base64, 'base64').toString('utf8');
  return text.replaceAll('OvenMediaEngine', 'Millrace');
}
