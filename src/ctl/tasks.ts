/** Commands for tasks: channels, recordings, pushes, dumps. */
import type { components, MillraceClient } from '../client/index.ts';
import { type Call, type Command, FILE_OPTION, fullAddress, NotThere, optionalArgument, required, UsageProblem } from './command.ts';
import { objectOf } from './json-input.ts';
import { placeIn } from './lists.ts';
import type { Column } from './text-table.ts';
import { bytesText } from './text-table.ts';
import { type AppPlace, forEachOf, inApps, unlessMissing } from './walk.ts';

type Schemas = components['schemas'];

const APP = '/v1/vhosts/{vhost}/apps/{app}';
const STREAM = `${APP}/streams/{stream}` as const;
const SCHEDULED = `${APP}/scheduledChannels` as const;
const MULTIPLEX = `${APP}/multiplexChannels` as const;
/** Protocols of pushes by the scheme of the URL. */
const PROTOCOLS: Readonly<Record<string, string>> = {
  'rtmp:': 'rtmp',
  'rtmps:': 'rtmp',
  'srt:': 'srt',
  'udp:': 'mpegts',
  'tcp:': 'mpegts',
};

const ID_OPTION = { id: { value: 'ID', about: 'name of the task (default: from the stream and the time)' } } as const;

interface ChannelRow extends AppPlace {
  readonly channel: string;
  readonly kind: 'scheduled' | 'multiplex';
  readonly state: string;
  readonly now: string;
}

/** Lists, starts and ends channels, recordings, pushes and dumps. */
export const taskCommands: readonly Command[] = [
  {
    name: 'channels',
    usage: '[VHOST[/APP[/CHANNEL]]]',
    summary: 'Scheduled and multiplex channels with their current items, or details of one',
    run: async (call) => {
      const { client, out } = call;
      const { channel, ...place } = placeIn(optionalArgument(call, 'limit the list to a virtual host or an application'), [
        'vhost',
        'app',
        'channel',
      ]);
      if (channel !== undefined) return out.tree(await channelNamed(client, { ...(place as AppPlace), channel }));
      out.list(
        [
          { title: 'CHANNEL', of: (row) => `${row.vhost}/${row.app}/${row.channel}` },
          { title: 'KIND', of: ({ kind }) => kind },
          { title: 'STATE', of: ({ state }) => state },
          { title: 'NOW', of: ({ now }) => now },
        ],
        await inApps(client, place, (at) => channelsOf(client, at)),
        'no channels',
      );
    },
  },
  {
    name: 'recordings',
    usage: '[VHOST[/APP[/ID]]]',
    summary: 'Recording tasks, or details of one',
    run: async (call) => {
      const rows = await tasksOf(call, (path, id) => call.client.post(`${APP}:records`, { path, body: id === undefined ? {} : { id } }));
      if (rows === null) return;
      const columns: Column<Schemas['RecordTask']>[] = [
        ...taskColumns('RECORDING'),
        { title: 'RECORDED', of: (task) => bytesText(task.totalRecordBytes ?? 0), right: true },
        { title: 'FILE', of: (task) => task.outputFilePath ?? task.filePath ?? '' },
        { title: 'REASON', of: ({ reason }) => reason ?? '' },
      ];
      call.out.list(columns, rows, 'no recordings');
    },
  },
  {
    name: 'record start',
    usage: 'VHOST/APP/STREAM',
    summary: 'Record a stream, now or as soon as it starts',
    options: {
      ...ID_OPTION,
      'file-path': { value: 'PATH', about: 'file of the recording, within the allowed folders of the server' },
      'info-path': { value: 'PATH', about: 'file of its description' },
      interval: { value: 'MS', about: 'start a new file after this time' },
      schedule: { value: 'CRON', about: 'start a new file at these times, such as "0 */1 *"' },
      ...FILE_OPTION,
    },
    run: async (call) => {
      const { stream, ...path } = fullAddress(call, 'vhost', 'app', 'stream');
      const [filePath, infoPath, schedule] = ['file-path', 'info-path', 'schedule'].map((name) => call.option(name));
      const interval = call.option('interval');
      if (interval !== undefined && !/^\d{1,12}$/.test(interval))
        throw new UsageProblem(`--interval is a number of milliseconds, not '${interval}'`);
      const body = {
        ...(await objectOf(call)),
        id: idOf(call, stream),
        stream: { name: stream },
        ...(filePath !== undefined && { filePath }),
        ...(infoPath !== undefined && { infoPath }),
        ...(schedule !== undefined && { schedule }),
        ...(interval !== undefined && { interval: Number(interval) }),
      };
      const task = await call.client.post(`${APP}:startRecord`, { path, body });
      call.out.done(`recording ${path.vhost}/${path.app}/${task.id}: ${task.state}`, task);
    },
  },
  {
    name: 'record stop',
    usage: 'VHOST/APP/ID',
    summary: 'End a recording',
    run: async (call) => {
      const { id, ...path } = fullAddress(call, 'vhost', 'app', 'id');
      const task = await call.client.post(`${APP}:stopRecord`, { path, body: { id } });
      call.out.done(
        `recording ${path.vhost}/${path.app}/${id}: ${task.state}${task.outputFilePath === undefined ? '' : `, ${task.outputFilePath}`}`,
        task,
      );
    },
  },
  {
    name: 'pushes',
    usage: '[VHOST[/APP[/ID]]]',
    summary: 'Push tasks, or details of one',
    run: async (call) => {
      const rows = await tasksOf(call, (path, id) => call.client.post(`${APP}:pushes`, { path, body: id === undefined ? {} : { id } }));
      if (rows === null) return;
      const columns: Column<Schemas['PushTask']>[] = [
        ...taskColumns('PUSH'),
        { title: 'SENT', of: (task) => bytesText(task.totalsentBytes), right: true },
        { title: 'TO', of: ({ url }) => url },
        { title: 'REASON', of: ({ reason }) => reason ?? '' },
      ];
      call.out.list(columns, rows, 'no pushes');
    },
  },
  {
    name: 'push start',
    usage: 'VHOST/APP/STREAM --url URL',
    summary: 'Push a stream to another server, now or as soon as it starts',
    options: {
      ...ID_OPTION,
      url: { value: 'URL', about: 'rtmp://…, srt://… or udp://…' },
      key: { value: 'KEY', about: 'stream key, which RTMP needs' },
      protocol: { value: 'WORD', about: 'rtmp, srt or mpegts (default: from the URL)' },
      ...FILE_OPTION,
    },
    run: async (call) => {
      const { stream, ...path } = fullAddress(call, 'vhost', 'app', 'stream');
      const url = required(call, 'url', 'says where to, as in --url rtmp://live.example/app');
      const protocol = call.option('protocol') ?? PROTOCOLS[/^[a-z]+:/.exec(url)?.[0] ?? ''];
      if (protocol === undefined) throw new UsageProblem(`'${url}' does not name the protocol: give --protocol`);
      const key = call.option('key');
      const given = { ...(await objectOf(call)), id: idOf(call, stream), stream: { name: stream } };
      const task = await call.client.post(`${APP}:startPush`, {
        path,
        body: { ...given, protocol, url, ...(key !== undefined && { streamKey: key }) },
      });
      call.out.done(`push ${path.vhost}/${path.app}/${task.id}: ${task.state}`, task);
    },
  },
  {
    name: 'push stop',
    usage: 'VHOST/APP/ID',
    summary: 'End a push',
    run: async (call) => {
      const { id, ...path } = fullAddress(call, 'vhost', 'app', 'id');
      await call.client.post(`${APP}:stopPush`, { path, body: { id } });
      call.out.done(`push ${path.vhost}/${path.app}/${id} ended`, { id });
    },
  },
  {
    name: 'dumps',
    usage: 'VHOST/APP/STREAM',
    summary: 'HLS dumps of a stream',
    run: async (call) => {
      const path = fullAddress(call, 'vhost', 'app', 'stream');
      const { outputs } = await call.client.get(STREAM, { path });
      const rows = await forEachOf(outputs, ({ name }) =>
        unlessMissing(call.client.post(`${STREAM}:hlsDumps`, { path, body: { outputStreamName: name } })),
      );
      call.out.list(
        [
          { title: 'DUMP', of: ({ id }) => id },
          { title: 'OUTPUT STREAM', of: ({ outputStreamName }) => outputStreamName },
          { title: 'FOLDER', of: ({ outputPath }) => outputPath },
        ],
        rows.flat(),
        'no dumps',
      );
    },
  },
  {
    name: 'dump start',
    usage: 'VHOST/APP/STREAM --path FOLDER',
    summary: 'Store the LL-HLS output of a stream as files',
    options: {
      ...ID_OPTION,
      path: { value: 'FOLDER', about: 'folder of the dump, within the allowed folders of the server' },
      output: { value: 'NAME', about: 'output stream (default: the one named like the stream)' },
      ...FILE_OPTION,
    },
    run: async (call) => {
      const path = fullAddress(call, 'vhost', 'app', 'stream');
      const body = {
        ...(await objectOf(call)),
        id: idOf(call, path.stream),
        outputStreamName: call.option('output') ?? path.stream,
        outputPath: required(call, 'path', 'says where to'),
      };
      const outputs = await call.client.post(`${STREAM}:startHlsDump`, { path, body });
      call.out.done(`dump ${body.id} of ${outputs.join(' ')} began`, { id: body.id, outputs });
    },
  },
  {
    name: 'dump stop',
    usage: 'VHOST/APP/STREAM',
    summary: 'End one dump of a stream, or all',
    options: {
      id: { value: 'ID', about: 'id of the dump (default: all of the output stream)' },
      output: { value: 'NAME', about: 'output stream (default: the one named like the stream)' },
    },
    run: async (call) => {
      const path = fullAddress(call, 'vhost', 'app', 'stream');
      const id = call.option('id');
      const body = { outputStreamName: call.option('output') ?? path.stream, ...(id !== undefined && { id }) };
      const outputs = await call.client.post(`${STREAM}:stopHlsDump`, { path, body });
      call.out.done(`dumps of ${outputs.join(' ')} ended`, { outputs });
    },
  },
];

/** Tasks within an address; null if it named one task, which has been printed. */
async function tasksOf<T>(call: Call, list: (path: AppPlace, id?: string) => Promise<readonly T[]>): Promise<readonly T[] | null> {
  const { id, ...place } = placeIn(optionalArgument(call, 'limit the list to a virtual host or an application'), ['vhost', 'app', 'id']);
  if (id === undefined) return inApps(call.client, place, (path) => list(path));
  const [task] = await list(place as AppPlace, id);
  if (task === undefined) throw new NotThere(`there is no task '${id}' in ${place.vhost}/${place.app}`);
  call.out.tree(task);
  return null;
}

function taskColumns<T extends Schemas['RecordTask'] | Schemas['PushTask']>(title: string): Column<T>[] {
  return [
    { title, of: (task) => `${task.vhost}/${task.app}/${task.id}` },
    { title: 'STREAM', of: (task) => task.stream.name },
    { title: 'STATE', of: (task) => task.state },
  ];
}

function idOf(call: Call, stream: string): string {
  return call.option('id') ?? `${stream}-${new Date().toISOString().replace(/\D/g, '').slice(0, 14)}`;
}

async function channelsOf(client: MillraceClient, at: AppPlace): Promise<ChannelRow[]> {
  const scheduled = (await unlessMissing(client.get(SCHEDULED, { path: at }))) ?? [];
  const multiplex = (await unlessMissing(client.get(MULTIPLEX, { path: at }))) ?? [];
  const rows = [
    ...(await forEachOf(scheduled, async (channel): Promise<ChannelRow | null> => {
      const shown = await unlessMissing(client.get(`${SCHEDULED}/{channel}`, { path: { ...at, channel } }));
      if (shown === null) return null;
      const { state, name = '', currentItem } = shown.currentProgram;
      const now = [name, currentItem?.url ?? ''].filter((text) => text !== '').join(': ');
      return { ...at, channel, kind: 'scheduled', state, now };
    })),
    ...(await forEachOf(multiplex, async (channel): Promise<ChannelRow | null> => {
      const shown = await unlessMissing(client.get(`${MULTIPLEX}/{channel}`, { path: { ...at, channel } }));
      return shown === null ? null : { ...at, channel, kind: 'multiplex', state: shown.state, now: shown.pullingMessage ?? '' };
    })),
  ];
  return rows;
}

/** The channel with this name, of either kind. */
async function channelNamed(client: MillraceClient, path: AppPlace & { readonly channel: string }): Promise<unknown> {
  const multiplex = await client.get(MULTIPLEX, { path }).then(
    (names) => names.includes(path.channel),
    () => false,
  );
  return multiplex ? client.get(`${MULTIPLEX}/{channel}`, { path }) : client.get(`${SCHEDULED}/{channel}`, { path });
}
