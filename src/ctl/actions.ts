/** Commands that do or show one thing: the server, statistics, disconnected viewers, events, certificates. */
import type { components, paths } from '../client/index.ts';
import { addressed, type Call, type Command, FILE_OPTION, fullAddress, optionalArgument, UsageProblem } from './command.ts';
import { bodyOf, neededBody } from './json-input.ts';
import { placeIn } from './lists.ts';
import { forEachOf, type StreamPlace, unlessMissing } from './walk.ts';

type LogLevel = paths['/v2/internals/log']['patch']['requestBody']['content']['application/json']['level'];

const STREAM = '/v1/vhosts/{vhost}/apps/{app}/streams/{stream}';
const EVENT_FILE = { file: { value: 'FILE', about: 'JSON as in docs/guide/events.md; - is standard input' } } as const;

/** The server, statistics and actions. */
export const actionCommands: readonly Command[] = [
  {
    name: 'health',
    usage: '',
    summary: 'Health of the server; needs no token',
    open: true,
    run: async (call) => {
      nothing(call);
      const { status, reasons = [] } = await call.client.get('/health');
      call.out.done([status, ...reasons.map((reason) => `- ${reason}`)].join('\n'), { status, reasons });
    },
  },
  {
    name: 'version',
    usage: '',
    summary: 'Versions of the server',
    run: async (call) => {
      nothing(call);
      call.out.tree(await call.client.get('/v1/version'));
    },
  },
  {
    name: 'server',
    usage: '',
    summary: 'Ports of the server, and the virtual hosts that its configuration declares',
    run: async (call) => {
      nothing(call);
      call.out.tree(await call.client.get('/v1/server'));
    },
  },
  {
    name: 'drain',
    usage: '',
    summary: 'Refuse new sessions and publishers; existing ones continue',
    run: async (call) => {
      nothing(call);
      call.out.tree(await call.client.post('/v1/server:drain'));
    },
  },
  {
    name: 'resume',
    usage: '',
    summary: 'Accept sessions and publishers again after a drain',
    run: async (call) => {
      nothing(call);
      call.out.tree(await call.client.post('/v1/server:resume'));
    },
  },
  {
    name: 'stats',
    usage: '[VHOST[/APP[/STREAM]]]',
    summary: 'Statistics of the server, or of a virtual host, application or stream',
    run: async (call) => call.out.tree(await statisticsOf(call)),
  },
  {
    name: 'queues',
    usage: '',
    summary: 'Queues of the server; queues that dropped something come first',
    run: async (call) => {
      nothing(call);
      const queues = await call.client.get('/v2/internals/queues');
      call.out.list(
        [
          { title: 'QUEUE', of: ({ urn }) => urn },
          { title: 'SIZE', of: ({ size }) => size, right: true },
          { title: 'PEAK', of: ({ peak }) => peak, right: true },
          { title: 'LIMIT', of: ({ threshold }) => threshold, right: true },
          { title: 'DROPPED', of: ({ drop }) => drop, right: true },
          { title: 'IN/S', of: ({ inputPerSecond }) => inputPerSecond, right: true },
          { title: 'OUT/S', of: ({ outputPerSecond }) => outputPerSecond, right: true },
        ],
        queues.toSorted((a, b) => b.drop - a.drop),
        'no queues',
      );
    },
  },
  {
    name: 'srt',
    usage: '[--host HOST]',
    summary: 'Whether the SRT ports answer, tried by the server itself',
    options: { host: { value: 'HOST', about: 'try it at this name or address, too: that by which others reach the server' } },
    run: async (call) => {
      nothing(call);
      const host = call.option('host');
      call.out.list(
        [
          { title: 'PORT', of: ({ port }) => port, right: true },
          { title: 'FOR', of: ({ direction }) => (direction === 'publish' ? 'publishers' : 'viewers') },
          { title: 'TRIED AT', of: ({ address }) => address },
          { title: 'ANSWERED', of: ({ answered }) => (answered ? 'yes' : 'no') },
          { title: 'ROUND TRIP', of: ({ roundTripMs }) => (roundTripMs === undefined ? '-' : `${roundTripMs} ms`), right: true },
        ],
        await call.client.get('/v2/internals/srt', { query: host === undefined ? {} : { host } }),
        'no SRT ports',
      );
    },
  },
  {
    name: 'codecs',
    usage: '',
    summary: 'Codec modules of the machine',
    run: async (call) => {
      nothing(call);
      call.out.list<components['schemas']['CodecModule']>(
        [
          { title: 'MODULE', of: ({ name }) => name },
          { title: 'MEDIUM', of: ({ mediaType }) => mediaType },
          { title: 'DECODERS', of: ({ metrics }) => metrics.active.decoder, right: true },
          { title: 'ENCODERS', of: ({ metrics }) => metrics.active.encoder, right: true },
          { title: 'CODECS', of: ({ supportedCodecs }) => supportedCodecs.join(' ') },
        ],
        await call.client.get('/v2/internals/codecs'),
        'no codec modules',
      );
    },
  },
  {
    name: 'log-level',
    usage: '[LEVEL]',
    summary: 'Print the log level, or set it until the next start',
    run: async (call) => {
      const level = optionalArgument(call, 'a level');
      const path = '/v2/internals/log';
      const answer =
        level === undefined ? await call.client.get(path) : await call.client.patch(path, { body: { level: level as LogLevel } });
      call.out.done(answer.level, answer);
    },
  },
  {
    name: 'kick',
    usage: 'VHOST/APP/STREAM/SESSION… | VHOST/APP/STREAM --all',
    summary: 'Send viewers away',
    options: { all: { about: 'all viewers of the stream' } },
    run: kick,
  },
  {
    name: 'send-event',
    usage: 'VHOST/APP/STREAM --file FILE',
    summary: 'Insert events into a stream: ID3, cue, SCTE-35',
    options: EVENT_FILE,
    run: async (call) => {
      const path = fullAddress(call, 'vhost', 'app', 'stream');
      const body = await neededBody(call);
      if (Array.isArray(body)) await call.client.post(`${STREAM}:sendEvents`, { path, body });
      else await call.client.post(`${STREAM}:sendEvent`, { path, body: body as never });
      call.out.done('sent', path);
    },
  },
  {
    name: 'send-subtitles',
    usage: 'VHOST/APP/STREAM --file FILE',
    summary: 'Show subtitles on a stream',
    options: { file: { value: 'FILE', about: 'JSON as in docs/guide/subtitles.md; - is standard input' } },
    run: async (call) => {
      const path = fullAddress(call, 'vhost', 'app', 'stream');
      await call.client.post(`${STREAM}:sendSubtitles`, { path, body: (await neededBody(call)) as never });
      call.out.done('sent', path);
    },
  },
  {
    name: 'conclude',
    usage: 'VHOST/APP/STREAM',
    summary: 'End the live playlists of LL-HLS and HLS',
    run: async (call) => {
      const path = fullAddress(call, 'vhost', 'app', 'stream');
      await call.client.post(`${STREAM}:concludeHlsLive`, { path });
      call.out.done(`concluded ${path.vhost}/${path.app}/${path.stream}`, path);
    },
  },
  {
    name: 'reload-certificate',
    usage: '[VHOST]',
    summary: 'Reload the certificate files of one virtual host or of all',
    options: { 'of-api': { about: 'reload the certificate of the API instead' } },
    run: async (call) => {
      const vhost = optionalArgument(call, 'a virtual host');
      if (call.flag('of-api') && vhost !== undefined) throw new UsageProblem('give a virtual host or --of-api, not both');
      if (call.flag('of-api')) await call.client.post('/v1/managers/api:reloadCertificate');
      else if (vhost === undefined) await call.client.post('/v1/vhosts:reloadAllCertificates');
      else await call.client.post('/v1/vhosts/{vhost}:reloadCertificate', { path: { vhost } });
      call.out.done('loaded', { vhost: vhost ?? null });
    },
  },
  {
    name: 'call',
    any: true,
    usage: 'METHOD PATH',
    summary: 'Any request, such as: call GET /v1/stats/current/internals',
    details: 'Prints the body of the answer unchanged. The path is sent unchanged.',
    options: FILE_OPTION,
    run: async (call) => {
      const [method = '', path = '', ...more] = call.args;
      if (!/^[A-Za-z]+$/.test(method) || !path.startsWith('/') || more.length > 0)
        throw new UsageProblem('give a method and a path, as in: call GET /v1/vhosts');
      const body = call.option('file') === undefined ? {} : { body: await bodyOf(call) };
      const answer = await call.client.request(method, path, body);
      if (typeof answer.body === 'string') call.out.text(answer.body);
      else call.out.json(answer.body);
    },
  },
];

async function statisticsOf(call: Call): Promise<unknown> {
  const { client } = call;
  const { vhost, app, stream } = placeIn(optionalArgument(call, 'what they are of'), ['vhost', 'app', 'stream']);
  if (vhost === undefined) return client.get('/v1/stats/current');
  if (app === undefined) return client.get('/v1/stats/current/vhosts/{vhost}', { path: { vhost } });
  if (stream === undefined) return client.get('/v1/stats/current/vhosts/{vhost}/apps/{app}', { path: { vhost, app } });
  return client.get('/v1/stats/current/vhosts/{vhost}/apps/{app}/streams/{stream}', { path: { vhost, app, stream } });
}

async function kick(call: Call): Promise<void> {
  const { client, args } = call;
  const query = { protocol: 'all' };
  if (!call.flag('all')) {
    if (args.length === 0) throw new UsageProblem('give VHOST/APP/STREAM/SESSION, or VHOST/APP/STREAM with --all');
    // All arguments are checked before the first viewer is disconnected.
    const sessions = args.map(
      (argument) => addressed(argument, ['vhost', 'app', 'stream', 'session']) as StreamPlace & { session: string },
    );
    for (const path of sessions) await client.delete(`${STREAM}/sessions/{session}`, { path, query });
    return call.out.done(`disconnected: ${sessions.length}`, sessions);
  }
  const path = fullAddress(call, 'vhost', 'app', 'stream');
  const names = await client.get(`${STREAM}/sessions`, { path, query });
  const gone = await forEachOf(names, async (session) => {
    const ended = await unlessMissing(
      client.delete(`${STREAM}/sessions/{session}`, { path: { ...path, session }, query }).then(() => true),
    );
    return ended === null ? null : { ...path, session };
  });
  call.out.done(`disconnected: ${gone.length}`, gone);
}

function nothing({ args }: Call): void {
  if (args.length > 0) throw new UsageProblem(`unexpected argument '${args[0]}'`);
}
