/** Commands that list objects: `vhosts`, `apps`, `streams`, `sessions`, `profiles`, keys. */
import { type components, protocolName, viewersOf } from '../client/index.ts';
import { addressed, type Command, fullAddress, oneArgument, optionalArgument } from './command.ts';
import { bitrateText, bytesText } from './text-table.ts';
import { type AppPlace, appsOf, forEachOf, inApps, type StreamPlace, unlessMissing } from './walk.ts';

type Track = components['schemas']['StreamInformation']['input']['tracks'][number];

const APP = '/v1/vhosts/{vhost}/apps/{app}';
const STREAM = `${APP}/streams/{stream}` as const;

/** Number of sessions in one request. */
const MAX_VIEWERS_AT_ONCE = 1000;

interface Viewer {
  readonly session: string;
  readonly protocol: string;
  readonly client?: string;
  readonly statistics: components['schemas']['SessionStatistics'];
}

/** Lists of virtual hosts and their contents. */
export const listCommands: readonly Command[] = [
  {
    name: 'vhosts',
    usage: '[VHOST]',
    summary: 'Virtual hosts, or details of one',
    run: async (call) => {
      const { client, out } = call;
      const vhost = optionalArgument(call, 'a virtual host');
      if (vhost !== undefined) return out.tree(await client.get('/v1/vhosts/{vhost}', { path: { vhost } }));
      const rows = await forEachOf(await client.get('/v1/vhosts'), async (name) => {
        const path = { vhost: name };
        const shown = await unlessMissing(client.get('/v1/vhosts/{vhost}', { path }));
        const apps = await unlessMissing(client.get('/v1/vhosts/{vhost}/apps', { path }));
        return shown === null || apps === null ? null : { ...shown, apps };
      });
      out.list(
        [
          { title: 'VIRTUAL HOST', of: ({ name }) => name },
          { title: 'HOST NAMES', of: ({ host }) => textList(host['names']) },
          { title: 'APPLICATIONS', of: ({ apps }) => apps.join(' ') },
        ],
        rows,
        'no virtual hosts',
      );
    },
  },
  {
    name: 'apps',
    usage: '[VHOST[/APP]]',
    summary: 'Applications, or details of one',
    run: async (call) => {
      const { client, out } = call;
      const { vhost, app } = placeIn(optionalArgument(call, 'a virtual host or an application'), ['vhost', 'app']);
      if (vhost !== undefined && app !== undefined) return out.tree(await client.get(APP, { path: { vhost, app } }));
      const rows = await forEachOf(await appsOf(client, vhost), async (place) => {
        const shown = await unlessMissing(client.get(APP, { path: place }));
        const streams = await unlessMissing(client.get(`${APP}/streams`, { path: place }));
        return shown === null || streams === null ? null : { vhost: place.vhost, ...shown, streams };
      });
      out.list(
        [
          { title: 'APPLICATION', of: (row) => `${row.vhost}/${row.name}` },
          { title: 'PROVIDERS', of: ({ providers }) => protocolNames(providers) },
          { title: 'PUBLISHERS', of: ({ publishers }) => protocolNames(publishers) },
          { title: 'STREAMS', of: ({ streams }) => streams.length, right: true },
        ],
        rows,
        'no applications',
      );
    },
  },
  {
    name: 'streams',
    usage: '[VHOST[/APP[/STREAM]]]',
    summary: 'Inbound streams with their tracks and viewers, or details of one',
    run: async (call) => {
      const { client, out } = call;
      const { stream, ...place } = placeIn(optionalArgument(call, 'limit the list to a virtual host or an application'), [
        'vhost',
        'app',
        'stream',
      ]);
      if (stream !== undefined) return out.tree(await client.get(STREAM, { path: { ...(place as AppPlace), stream } }));
      const rows = await inApps(client, place, async (at) => {
        const names = await client.get(`${APP}/streams`, { path: at });
        return forEachOf(names, async (name) => {
          const path = { ...at, stream: name };
          const information = await unlessMissing(client.get(STREAM, { path }));
          const statistics = await unlessMissing(client.get(`/v1/stats/current/vhosts/{vhost}/apps/{app}/streams/{stream}`, { path }));
          return information === null ? null : { ...path, ...information, statistics };
        });
      });
      out.list(
        [
          { title: 'STREAM', of: addressOf },
          { title: 'FROM', of: ({ input }) => protocolName(input.sourceType) },
          { title: 'VIDEO', of: ({ input }) => trackText(input.tracks, 'Video') },
          { title: 'AUDIO', of: ({ input }) => trackText(input.tracks, 'Audio') },
          { title: 'IN', of: ({ statistics }) => bitrateText(statistics?.avgThroughputIn ?? 0), right: true },
          { title: 'OUT', of: ({ statistics }) => bitrateText(statistics?.avgThroughputOut ?? 0), right: true },
          { title: 'VIEWERS', of: ({ statistics }) => viewersOf(statistics?.connections ?? {}), right: true },
          { title: 'SINCE', of: ({ input }) => input.createdTime },
        ],
        rows,
        'no streams',
      );
    },
  },
  {
    name: 'sessions',
    usage: 'VHOST/APP/STREAM[/SESSION]',
    summary: 'Viewers of a stream, or statistics of one',
    options: { protocol: { value: 'WORDS', about: 'only these protocols, such as webrtc,llhls' } },
    run: async (call) => {
      const { client, out } = call;
      const address = oneArgument(call, 'VHOST/APP/STREAM[/SESSION]');
      const { session, ...rest } = addressed(address, ['vhost', 'app', 'stream', 'session'], 3);
      const place = rest as StreamPlace;
      const at = `/v1/stats/current/vhosts/{vhost}/apps/{app}/streams/{stream}/sessions/{session}` as const;
      if (session !== undefined) {
        return out.tree(await client.get(at, { path: { ...place, session }, query: { protocol: 'all' } }));
      }
      const protocol = call.option('protocol') ?? 'all';
      const rows: (StreamPlace & Viewer & Viewer['statistics'])[] = [];
      for (let total = 1; rows.length < total; ) {
        const query = { protocol, offset: `${rows.length}`, limit: `${MAX_VIEWERS_AT_ONCE}` };
        const page = await client.get('/v2/vhosts/{vhost}/apps/{app}/streams/{stream}/sessions', { path: place, query });
        rows.push(...page.sessions.map((viewer) => ({ ...place, ...viewer, ...viewer.statistics })));
        // Sessions start and end between the requests.
        total = page.sessions.length === 0 ? 0 : page.total;
      }
      out.list(
        [
          { title: 'SESSION', of: (row) => row.session },
          { title: 'PROTOCOL', of: (row) => protocolName(row.protocol) },
          { title: 'CLIENT', of: (row) => row.client ?? '' },
          { title: 'OUT', of: (row) => bitrateText(row.avgThroughputOut), right: true },
          { title: 'TOTAL', of: (row) => bytesText(row.totalBytesOut), right: true },
          { title: 'SINCE', of: (row) => row.createdTime },
        ],
        rows.map(({ statistics: _repeated, ...row }) => row).sort((a, b) => a.protocol.localeCompare(b.protocol)),
        'no viewers',
      );
    },
  },
  {
    name: 'profiles',
    usage: 'VHOST/APP[/PROFILE]',
    summary: 'Output profiles of an application, or details of one',
    run: async (call) => {
      const { client, out } = call;
      const { profile, ...place } = addressed(oneArgument(call, 'VHOST/APP[/PROFILE]'), ['vhost', 'app', 'profile'], 2);
      const path = place as AppPlace;
      const item = `${APP}/outputProfiles/{profile}` as const;
      if (profile !== undefined) return out.tree(await client.get(item, { path: { ...path, profile } }));
      const names = await client.get(`${APP}/outputProfiles`, { path });
      const rows = await forEachOf(names, (name) => unlessMissing(client.get(item, { path: { ...path, profile: name } })));
      out.list(
        [
          { title: 'PROFILE', of: ({ name }) => name },
          { title: 'OUTPUT STREAM', of: ({ outputStreamName }) => outputStreamName },
          { title: 'VIDEOS', of: ({ encodes }) => nameList(encodes?.videos) },
          { title: 'AUDIOS', of: ({ encodes }) => nameList(encodes?.audios) },
        ],
        rows,
        'no output profiles',
      );
    },
  },
  ...(['publish-keys', 'play-tokens'] as const).map((name): Command => {
    const list = name === 'publish-keys' ? (`${APP}/publishKeys` as const) : (`${APP}/playTokens` as const);
    return {
      name,
      usage: 'VHOST/APP',
      summary: `${name === 'publish-keys' ? 'Publish keys' : 'Play tokens'} of an application, without their secrets`,
      run: async (call) => {
        const rows = await call.client.get(list, { path: fullAddress(call, 'vhost', 'app') });
        call.out.list(
          [
            { title: 'NAME', of: (row) => row.name },
            { title: 'STREAMS', of: ({ streams }) => streams ?? 'all' },
            { title: 'EXPIRES', of: ({ expires }) => expires ?? 'never' },
            { title: 'LAST USED', of: ({ lastUsed }) => lastUsed ?? '-' },
          ],
          rows,
          'none',
        );
      },
    };
  }),
];

/** Names of an address in which every name is optional. */
export function placeIn<N extends string>(text: string | undefined, names: readonly N[]): Partial<Record<N, string>> {
  return text === undefined ? {} : addressed(text, names, 1);
}

function addressOf({ vhost, app, stream }: StreamPlace): string {
  return `${vhost}/${app}/${stream}`;
}

function textList(names: unknown): string {
  return Array.isArray(names) ? names.join(' ') : '';
}

function protocolNames(modules: object | undefined): string {
  return [...new Set(Object.keys(modules ?? {}).map(protocolName))].join(' ');
}

function nameList(encodes: readonly object[] | undefined): string {
  return (encodes ?? []).map((encode) => ('name' in encode ? String(encode.name) : '')).join(' ');
}

/** The first track of a kind as text, and the number of others: `H264 1280x720 30 fps +2`. */
function trackText(tracks: readonly Track[], type: 'Video' | 'Audio'): string {
  const [first, ...more] = tracks.filter((track) => track.type === type);
  if (first === undefined) return '-';
  const rest = more.length > 0 ? ` +${more.length}` : '';
  if (first.type === 'Video') {
    const { codec, width, height, framerate } = first.video;
    return `${codec} ${width}x${height} ${Number(framerate.toFixed(2))} fps${rest}`;
  }
  return first.type === 'Audio' ? `${first.audio.codec} ${first.audio.samplerate} Hz ${first.audio.channel} ch${rest}` : '-';
}
