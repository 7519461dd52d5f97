/** The list of streams, and figures of the displayed ones only: a server may have thousands. */
import type { MillraceClient } from '../client/index.ts';
import type { Statistics, StreamInformation } from './server-facts.ts';

/** Names that identify a stream. */
export interface StreamName {
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
}

/** An application with the names of its streams. */
export interface AppStreams {
  readonly vhost: string;
  readonly app: string;
  readonly streams: readonly string[];
}

/** A stream with its figures; null if it has ended meanwhile. */
export interface StreamRow extends StreamName {
  readonly information: StreamInformation | null;
  readonly statistics: Statistics | null;
}

/** A stream in the answer for several. */
interface Figures {
  readonly information: StreamInformation;
  readonly statistics?: Statistics;
}

/** Limits of one request: names, and characters of all names. */
const MAX_NAMES = 50;
const MAX_NAMES_LENGTH = 6000;
/** Concurrent requests: few, so that the console does not disturb viewers. */
const MAX_AT_ONCE = 6;

/** Path of a stream. */
export const STREAM = '/v1/vhosts/{vhost}/apps/{app}/streams/{stream}';
/** Path of the figures of the last half hour. */
export const HISTORY = '/v2/vhosts/{vhost}/apps/{app}/streams/{stream}/history';
/** Path of the statistics of a stream. */
export const STATISTICS = '/v1/stats/current/vhosts/{vhost}/apps/{app}/streams/{stream}';

/** Path parameters of a stream for the client. */
export function of({ vhost, app, stream }: StreamName): { readonly path: StreamName } {
  return { path: { vhost, app, stream } };
}

/** Path parameters of the application of a stream. */
export function appOf({ vhost, app }: Pick<StreamName, 'vhost' | 'app'>): {
  readonly path: { readonly vhost: string; readonly app: string };
} {
  return { path: { vhost, app } };
}

/** All applications with the names of their streams, in the order of the server. */
export async function listStreams(client: MillraceClient): Promise<AppStreams[]> {
  const vhosts = await client.get('/v1/vhosts');
  const apps = await inTurns(vhosts, async (vhost) =>
    (await client.get('/v1/vhosts/{vhost}/apps', { path: { vhost } })).map((app) => ({ vhost, app })),
  );
  return inTurns(apps.flat(), async ({ vhost, app }) => {
    const streams = await client.get('/v1/vhosts/{vhost}/apps/{app}/streams', { path: { vhost, app } }).catch(() => []);
    return { vhost, app, streams };
  });
}

/** Figures of some streams, with joint requests for streams of one application. */
export async function figuresOf(client: MillraceClient, names: readonly StreamName[]): Promise<StreamRow[]> {
  const known = new Map<string, Figures>();
  await inTurns(requestsOf(names), async (asked) => {
    const [{ vhost, app }] = asked;
    const query = { names: asked.map(({ stream }) => stream).join('/') };
    const found = await client.get('/v2/vhosts/{vhost}/apps/{app}/streams', { path: { vhost, app }, query }).catch(() => []);
    for (const figures of found) known.set(keyOf({ vhost, app, stream: figures.information.name }), figures);
  });
  return names.map((name) => {
    const { information = null, statistics = null } = known.get(keyOf(name)) ?? {};
    return { ...name, information, statistics };
  });
}

/** The names of each request: from one application, within the length limit of a URL. */
function requestsOf(names: readonly StreamName[]): [StreamName, ...StreamName[]][] {
  const requests: [StreamName, ...StreamName[]][] = [];
  let length = 0;
  for (const name of names) {
    const last = requests.at(-1);
    length += encodeURIComponent(name.stream).length;
    const fits = last !== undefined && last[0].vhost === name.vhost && last[0].app === name.app && length <= MAX_NAMES_LENGTH;
    if (fits && last.length < MAX_NAMES) last.push(name);
    else {
      requests.push([name]);
      length = encodeURIComponent(name.stream).length;
    }
  }
  return requests;
}

function keyOf({ vhost, app, stream }: StreamName): string {
  return `${vhost}/${app}/${stream}`;
}

/** Results in the order of `items`, with few requests at a time. */
export async function inTurns<In, Out>(items: readonly In[], work: (item: In) => Promise<Out>): Promise<Out[]> {
  const results: Out[] = new Array<Out>(items.length);
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) results[index] = await work(items[index] as In);
  };
  await Promise.all(Array.from({ length: Math.min(MAX_AT_ONCE, items.length) }, worker));
  return results;
}
