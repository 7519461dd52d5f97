/** Relays signalling requests from a delivery thread to the main thread over a private Unix socket. */
import { connect, type Socket } from 'node:net';
import type { Duplex, Readable } from 'node:stream';
import type { AddressSlot } from '../../util/address-shares.ts';
import { endAndCut } from '../../util/end-and-cut.ts';
import { request as httpRequest, STATUS_CODES } from '../../util/node-http.ts';
import { StallGuard } from '../../util/stall-guard.ts';
import { scaleTimeouts, type TimeoutScale } from '../../util/timeout-scale.ts';
import { type AskedPort, type ProxyHeaders, proxyHeaders } from '../../util/trusted-proxies.ts';
import { queryValue, splitTarget } from '../../wire/http/request-target.ts';
import type { ClientEnd } from '../../wire/proxy/proxy-header.ts';
import type { Admission } from '../admission.ts';
import type { AnswerSink, IncomingRequest } from '../http/answer-sink.ts';
import type { UpgradeEnds } from '../http/secure-listener.ts';
import type { RelayedPeer } from '../relayed-peer.ts';
import { COMMON_HEADERS } from './delivery.ts';
import type { MainThreadRequests } from './request-router.ts';

/** Concurrent relayed connections of a thread; above this, requests are answered with 503. */
export const MAX_RELAY = 20_000;
/** All in milliseconds. */
const TIMES = {
  /** For the main thread's answer to a repeated request; the main thread has a shorter limit. */
  forward: 50_000,
  /** For a client to receive the end of an answer. */
  linger: 2000,
  /** For a client to receive any waiting bytes. */
  stall: 30_000,
  /** Interval of that check. */
  sweep: 2000,
};
/** Descriptors of a relayed connection besides its own: both ends of the Unix socket. */
const DESCRIPTORS = 2;
const FULL = 'too many signalling connections\n';
const SHARE = 'too many requests of this address wait for an answer\n';
const RAW_REFUSAL = `Connection: close\r\nContent-Type: text/plain\r\nRetry-After: 1\r\n`;

/** Why a request is not relayed. */
interface Refusal {
  readonly status: 429 | 503;
  readonly text: string;
}

/** Values of the `direction` query for signalling over plain HTTP. */
const HTTP_DIRECTIONS = new Set(['whip', 'whep']);

/** Whether a request belongs to signalling: WebSocket upgrades, WHIP and WHEP. */
function isSignalling(request: IncomingRequest): boolean {
  if (request.method === 'GET' && request.header('upgrade')?.toLowerCase() === 'websocket') return true;
  const { query } = splitTarget(request.target);
  return HTTP_DIRECTIONS.has(queryValue(query, 'direction') ?? '');
}

/** Relays whole connections to the main thread over its Unix socket, in both directions. `close` ends all of them. */
export class MainThreadRelay implements MainThreadRequests {
  readonly #path: string;
  readonly #admission: Admission;
  readonly #times: typeof TIMES;
  readonly #open = new Map<Duplex, StallGuard>();
  #sweeper: NodeJS.Timeout | null = null;

  /** `path`: the main thread's socket. */
  constructor(path: string, admission: Admission, timeoutScale: TimeoutScale = 1) {
    this.#path = path;
    this.#admission = admission;
    this.#times = scaleTimeouts(TIMES, timeoutScale);
  }

  /** Connections being relayed. */
  get size(): number {
    return this.#open.size;
  }

  take(request: IncomingRequest, sink: AnswerSink): boolean {
    if (!isSignalling(request)) return false;
    const headers = proxyHeaders((name) => request.header(name));
    const own = { secure: sink.secure, port: sink.localPort };
    const peer = this.#peerOf({ address: sink.remoteAddress, port: sink.remotePort }, headers, own);
    const slot = this.#admit(peer.address);
    if ('status' in slot) {
      sink.answer(slot.status, `${COMMON_HEADERS}Retry-After: 1\r\nContent-Type: text/plain\r\n`, slot.text, null);
      return true;
    }
    const taken = sink.takeOver();
    if (taken !== null) this.#relay(taken.socket, taken.bytes, peer, slot);
    else if (request.body !== undefined) this.#forward(request, request.body, { sink, peer, slot });
    else {
      slot.leave();
      return false;
    }
    return true;
  }

  /** Ends all relayed connections. Idempotent. */
  close(): void {
    for (const socket of this.#open.keys()) socket.destroy();
    this.#rest();
  }

  /** Relays an upgrade request over TLS; `bytes` start with the request. */
  takeUpgrade(client: Duplex, bytes: Buffer, { remote, localPort, ...headers }: UpgradeEnds): void {
    const peer = this.#peerOf(remote, headers, { port: localPort, secure: true });
    const slot = this.#admit(peer.address);
    if ('status' in slot) {
      const { status, text } = slot;
      client.on('error', () => client.destroy());
      const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${RAW_REFUSAL}Content-Length: ${text.length}\r\n\r\n`;
      endAndCut(client, `${head}${text}`, this.#times.linger);
    } else this.#relay(client, bytes, peer, slot);
  }

  #peerOf(end: ClientEnd, headers: ProxyHeaders, own: AskedPort): RelayedPeer {
    const { proxies } = this.#admission;
    const asked = proxies.askedAt(end.address, headers, own);
    const address = proxies.clientOf(end.address, headers.forwardedFor);
    return { address, port: own.port, asked, end, realIp: proxies.realIpOf(end.address, headers) };
  }

  /** Reserves a slot until the answer, and the descriptors for the relay; else the refusal. */
  #admit(address: string): AddressSlot | Refusal {
    const { signalling, refusals } = this.#admission;
    if (this.#open.size >= MAX_RELAY || !this.#admission.takeDescriptors(DESCRIPTORS)) {
      refusals.note('signalling requests refused: too many are open', { open: this.#open.size });
      return { status: 503, text: FULL };
    }
    const slot = signalling.enter(address);
    if (slot !== null) return slot;
    this.#admission.giveDescriptors(DESCRIPTORS);
    refusals.note('signalling requests refused: too many of their address wait for an answer', { peer: address, share: signalling.share });
    return { status: 429, text: SHARE };
  }

  /** Connects `client` to the main thread, which gets `bytes` first. `slot` is released at the first byte of the answer. */
  #relay(client: Duplex, bytes: Buffer, peer: RelayedPeer, slot: AddressSlot): void {
    const upstream = this.#connect(peer);
    upstream.once('data', () => slot.leave());
    upstream.once('close', () => {
      slot.leave();
      this.#admission.giveDescriptors(DESCRIPTORS);
    });
    this.#open.set(client, new StallGuard(client, this.#times.stall));
    this.#sweeper ??= setInterval(() => this.#sweep(), this.#times.sweep);
    let linger: NodeJS.Timeout | undefined;
    const end = (): void => {
      clearTimeout(linger);
      this.#open.delete(client);
      if (this.#open.size === 0) this.#rest();
      client.destroy();
      upstream.destroy();
    };
    client.on('error', end);
    client.on('close', end);
    upstream.on('error', end);
    upstream.on('close', () => {
      // The last bytes of an answer may not be sent yet, and the client may never close its side.
      if (client.writableFinished) end();
      else linger = setTimeout(end, this.#times.linger);
    });
    upstream.write(bytes);
    client.pipe(upstream);
    upstream.pipe(client);
  }

  /** Repeats a request of a shared connection (HTTP over TLS), and returns the answer. */
  #forward(
    request: IncomingRequest,
    body: Readable,
    { sink, peer, slot }: { sink: AnswerSink; peer: RelayedPeer; slot: AddressSlot },
  ): void {
    const connection = this.#connect(peer);
    connection.once('close', () => {
      slot.leave();
      this.#admission.giveDescriptors(DESCRIPTORS);
    });
    const upstream = httpRequest({
      method: request.method,
      path: request.target,
      headers: forwardedHeaders(request),
      createConnection: () => connection,
    });
    // An absolute deadline: bytes that trickle in do not extend it.
    const deadline = setTimeout(() => fail(), this.#times.forward);
    upstream.once('close', () => clearTimeout(deadline));
    let over = false;
    const fail = (): void => {
      if (over) return;
      over = true;
      upstream.destroy();
      sink.answer(502, `${COMMON_HEADERS}Content-Type: text/plain\r\n`, 'signalling did not answer\n', null);
    };
    sink.wait({
      aborted: () => {
        over = true;
        upstream.destroy();
      },
    });
    upstream.on('error', fail);
    upstream.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', fail);
      response.on('end', () => {
        if (over) return;
        over = true;
        try {
          sink.answer(response.statusCode ?? 502, answerBlock(response.rawHeaders), chunks, null);
        } catch (error) {
          sink.fail(error);
        }
      });
    });
    body.pipe(upstream);
  }

  #sweep(): void {
    const now = performance.now();
    for (const [client, guard] of this.#open) if (guard.isStalled(now)) client.destroy();
  }

  #rest(): void {
    if (this.#sweeper !== null) clearInterval(this.#sweeper);
    this.#sweeper = null;
  }

  #connect(peer: RelayedPeer): Socket {
    const upstream = connect(this.#path);
    upstream.write(`${JSON.stringify(peer)}\n`);
    return upstream;
  }
}

const REQUEST_HEADERS = [
  'host',
  'origin',
  'content-type',
  'content-length',
  'if-match',
  'user-agent',
  'authorization',
  'x-real-ip',
  'x-forwarded-for',
  'access-control-request-method',
  'access-control-request-headers',
  'oven-capabilities',
];
/** Written by the code that answers the client. */
const OWN_HEADERS = new Set(['connection', 'content-length', 'transfer-encoding', 'date', 'keep-alive']);

function forwardedHeaders(request: IncomingRequest): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of REQUEST_HEADERS) {
    const value = request.header(name);
    if (value !== undefined) headers[name] = value;
  }
  return headers;
}

function answerBlock(rawHeaders: readonly string[]): string {
  let block = '';
  for (let n = 0; n + 1 < rawHeaders.length; n += 2) {
    if (!OWN_HEADERS.has((rawHeaders[n] ?? '').toLowerCase())) block += `${rawHeaders[n]}: ${rawHeaders[n + 1]}\r\n`;
  }
  return block;
}
