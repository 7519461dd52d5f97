/** Child process of `crowd`: programs that call the API at a steady rate, and LL-HLS viewers that record the listing time of each part. */
import { Agent, request } from 'node:http';
import os from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { apiPath } from '../../test/harness/api-client.ts';
import { fetchText, openSession } from '../../test/harness/viewer.ts';

export type ClientOrder =
  | { readonly type: 'watch'; readonly playlists: readonly string[] }
  | { readonly type: 'ask'; readonly api: string; readonly authorization: string; readonly perSecond: number; readonly streams: number }
  | { readonly type: 'window' }
  | { readonly type: 'rest' };
/** Answer to `watch` when all clients have a playlist, and to `window`: the counts since the previous one. */
export type ClientAnswer =
  | { readonly type: 'watching' }
  | {
      readonly type: 'window';
      /** Milliseconds of each request, by its kind. */
      readonly latencies: Readonly<Record<string, readonly number[]>>;
      /** Refusing answers, and requests without an answer. */
      readonly refused: number;
      /** Delay of each part relative to the earliest part of its stream, without the media between them, ms. */
      readonly parts: readonly number[];
      /** Largest part duration that the playlists announce, seconds. */
      readonly partTarget: number;
      readonly failedViewers: number;
    };

interface Ask {
  readonly name: string;
  readonly method?: string;
  readonly path: string;
  readonly body?: unknown;
}

/** Clients normally run on other machines. */
const NICE = 19;
const TICK_MS = 2;
const MAX_SOCKETS = 64;
/** Limit of requests without an answer; beyond it, new requests wait, which lowers the rate. */
const MAX_WAITING = 500;
const DEADLINE_MS = 10_000;
/** The parent process may have ended silently. */
const MAX_MS = 300_000;
const APP = apiPath.app('default', 'app');
const STATS = '/v1/stats/current/vhosts/default';
/** Writes go to a second virtual host, because the declared virtual host with the streams is read-only. */
const ASIDE = 'aside';
const ASIDE_APPS = `${apiPath.vhost(ASIDE)}/apps`;
const ASIDE_APP = apiPath.app(ASIDE, 'app');
const PROFILE = {
  name: 'other',
  outputStreamName: '${OriginStreamName}_other',
  encodes: { videos: [{ name: 'video', bypass: true }], audios: [{ name: 'audio', bypass: true }] },
};

const agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS });
let latencies: Record<string, number[]> = {};
let refused = 0;
let waiting = 0;
let isOver = false;
let timer: NodeJS.Timeout | undefined;

/** The kind of request `number`: one in 100 is a write, and so on. */
function ask(number: number, streams: number): Ask {
  const stream = `s${(number * 7) % streams}`;
  const place = number % 100;
  if (place === 0) return write(number / 100);
  if (place < 40) return { name: 'stream', path: apiPath.stream(stream) };
  if (place < 80) return { name: 'statistics', path: apiPath.stats(stream) };
  if (place < 88) return { name: 'streams', path: `${APP}/streams` };
  if (place < 92) return { name: 'figures of 50 streams', path: `/v2${APP.slice(3)}/streams` };
  if (place < 94) return { name: 'statistics', path: `${STATS}/apps/app` };
  if (place < 96) return { name: 'statistics', path: STATS };
  if (place < 97) return { name: 'sessions', path: `${apiPath.stream(stream)}/sessions?protocol=all` };
  if (place < 98) return { name: 'queues', path: '/v2/internals/queues' };
  if (place < 99) return { name: 'profiles', path: `${APP}/outputProfiles` };
  return { name: 'metrics', path: '/metrics' };
}

/** In turn: an application is created, changed twice, and deleted. */
function write(turn: number): Ask {
  const name = 'write';
  const post = { name, method: 'POST' };
  const writes: readonly Ask[] = [
    { ...post, path: ASIDE_APPS, body: [{ name: 'app', type: 'live', providers: { rtmp: {} }, publishers: { llhls: {} } }] },
    { ...post, path: `${ASIDE_APP}/outputProfiles`, body: [PROFILE] },
    { name, method: 'PATCH', path: ASIDE_APP, body: { publishers: { llhls: { segmentCount: 6 } } } },
    { name, method: 'DELETE', path: ASIDE_APP },
  ];
  return writes[turn % writes.length] as Ask;
}

function send({ name, method = 'GET', path, body }: Ask, api: string, authorization: string): void {
  waiting += 1;
  const since = performance.now();
  const ended = (isGood: boolean): void => {
    waiting -= 1;
    if (!isGood) refused += 1;
    const kind = latencies[name] ?? [];
    latencies[name] = kind;
    kind.push(performance.now() - since);
  };
  const outgoing = request(api + path, {
    method,
    agent,
    timeout: DEADLINE_MS,
    headers: { authorization, 'content-type': 'application/json' },
  });
  outgoing.once('response', (response) => {
    response.resume();
    response.once('end', () => ended((response.statusCode ?? 500) < 400));
  });
  outgoing.once('timeout', () => outgoing.destroy(new Error('no answer')));
  outgoing.once('error', () => ended(false));
  outgoing.end(body === undefined ? undefined : JSON.stringify(body));
}

function askAll({ api, authorization, perSecond, streams }: Extract<ClientOrder, { type: 'ask' }>): void {
  const host = { name: ASIDE, host: { names: ['aside.example'] } };
  send({ name: 'virtual host', method: 'POST', path: '/v1/vhosts', body: [host] }, api, authorization);
  const since = performance.now();
  let begun = 1;
  timer = setInterval(() => {
    const due = Math.floor(((performance.now() - since) / 1000) * perSecond);
    for (; begun < due && waiting < MAX_WAITING; begun += 1) send(ask(begun, streams), api, authorization);
  }, TICK_MS);
}

/** A viewer that requests part after part. */
class Watcher {
  /** Listing times of the parts since the last window, each without the media before it, ms. */
  #places: number[] = [];
  #earliest = Number.POSITIVE_INFINITY;
  #media = 0;
  #seen = '';
  partTarget = 0;
  hasFailed = false;

  async run(playlist: string): Promise<void> {
    try {
      let url = playlist;
      for (;;) url = this.#read(await fetchText(url), playlist);
    } catch (error) {
      if (isOver) return;
      this.hasFailed = true;
      console.error(`viewer of ${playlist}: ${String(error)}`);
    }
  }

  /** Records new parts; returns the URL of the next part. */
  #read(text: string, playlist: string): string {
    const now = performance.now();
    this.partTarget = Number(/PART-TARGET=([\d.]+)/.exec(text)?.[1]);
    let sequence = Number(/#EXT-X-MEDIA-SEQUENCE:(\d+)/.exec(text)?.[1]);
    let part = 0;
    let isNew = this.#seen === '';
    for (const line of text.split('\n')) {
      if (line.startsWith('#EXT-X-PART:')) {
        if (isNew) this.#add(now, Number(/DURATION=([\d.]+)/.exec(line)?.[1]) * 1000);
        const key = `${sequence}/${part}`;
        if (key === this.#seen) isNew = true;
        part += 1;
      } else if (line !== '' && !line.startsWith('#')) {
        sequence += 1;
        part = 0;
      }
    }
    // A playlist of whole segments ends with the part that begins the next segment.
    this.#seen = part > 0 ? `${sequence}/${part - 1}` : this.#seen;
    const next = new URL(playlist);
    next.searchParams.set('_HLS_msn', `${sequence}`);
    next.searchParams.set('_HLS_part', `${part}`);
    return next.href;
  }

  #add(now: number, duration: number): void {
    this.#media += duration;
    const place = now - this.#media;
    this.#places.push(place);
    this.#earliest = Math.min(this.#earliest, place);
  }

  /** Delays since the last call. */
  take(): number[] {
    const late = this.#places.map((place) => place - this.#earliest);
    this.#places = [];
    return late;
  }
}

const watchers: Watcher[] = [];

async function watch(playlists: readonly string[]): Promise<void> {
  for (const playlist of playlists) {
    const watcher = new Watcher();
    watchers.push(watcher);
    void openSession(playlist).then(({ video }) => watcher.run(video));
    await delay(5);
  }
  while (watchers.some(({ partTarget }) => partTarget === 0)) await delay(20);
  process.send?.({ type: 'watching' } satisfies ClientAnswer);
}

function window(): void {
  const answer: ClientAnswer = {
    type: 'window',
    latencies,
    refused,
    parts: watchers.flatMap((watcher) => watcher.take()),
    partTarget: Math.max(...watchers.map(({ partTarget }) => partTarget)),
    failedViewers: watchers.filter(({ hasFailed }) => hasFailed).length,
  };
  latencies = {};
  refused = 0;
  process.send?.(answer);
}

/** Ends all requests; afterwards streams may end. */
function rest(): void {
  isOver = true;
  clearInterval(timer);
}

os.setPriority(os.getPriority() + NICE);
process.on('message', (order: ClientOrder) => {
  if (order.type === 'watch') void watch(order.playlists);
  else if (order.type === 'ask') askAll(order);
  else if (order.type === 'window') window();
  else rest();
});
process.once('disconnect', () => process.exit());
setTimeout(() => process.exit(1), MAX_MS).unref();
