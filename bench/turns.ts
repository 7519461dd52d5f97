/**
 * The longest turn of the main thread during rare but large work: schedules, reloads of the configuration, the OpenAPI document, and a
 * request with many applications. `BENCH_OTHER=…/scripts/start.mjs` names the program of another checkout as the baseline.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { formatScheduleFile } from '../src/services/schedule/definition-file.ts';
import { definitionFromJson } from '../src/services/schedule/definition-json.ts';
import { until } from '../test/harness/poll.ts';
import { MAIN, startServer, type TestServer } from '../test/harness/server.ts';
import { median } from './lib/measure.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import { type TurnWatch, turnWatch } from './lib/turn-watch.ts';

const OTHER = process.env['BENCH_OTHER'] ?? '';
const TARGET_MS = 20;
const SETTLE_MS = 300;
const PROGRAMS = 500;
const ITEMS = 20;
const APPLICATIONS = 500;
const CREATED = 300;
const BATCH = 30;
const MUX_TRACKS = 1000;
const HOST = '/v1/vhosts';
const CHANNELS = `${HOST}/aside/apps/app/scheduledChannels`;
/** Members that most applications have. */
const PROVIDERS = ['RTMP', 'SRT', 'WebRTC', 'OVT'];
const PUBLISHERS = ['LLHLS', 'HLS', 'WebRTC', 'OVT'];

function scheduleOf(name: string) {
  const items = (program: number) =>
    Array.from({ length: ITEMS }, (_, item) => ({ url: `file://a/folder/of/media/episode-${program}-${item}.mp4`, duration: 60_000 }));
  const programs = Array.from({ length: PROGRAMS }, (_, program) => ({
    name: `program ${program}`,
    scheduled: new Date(Date.UTC(2035, 0, 1, program)).toISOString(),
    repeat: true,
    items: items(program),
  }));
  return { stream: { name }, programs };
}

/** The list of a channel's items, the last of which is refused after all others have been read. */
function faultySchedule() {
  const schedule = scheduleOf('faulty');
  return {
    ...schedule,
    programs: schedule.programs.with(-1, { ...scheduleOf('x').programs[0], items: [{ url: 'http://a?key=b' }] } as never),
  };
}

function muxText(name: string): string {
  const track = (n: number) => `<Track><SourceTrackName>video_${n}</SourceTrackName><NewTrackName>track_${n}</NewTrackName></Track>`;
  const tracks = Array.from({ length: 100 }, (_, n) => track(n)).join('\n');
  const sources = Array.from({ length: MUX_TRACKS / 100 }, (_, n) => {
    const url = `stream://default/app/source_of_the_channel_${n}`;
    return `<SourceStream><Name>source${n}</Name><Url>${url}</Url><TrackMap>${tracks}</TrackMap></SourceStream>`;
  });
  return `<Multiplex><OutputStream><Name>${name}</Name></OutputStream><SourceStreams>${sources.join('\n')}</SourceStreams></Multiplex>`;
}

/** Applications that need a key for publishing, with other names in each batch. */
function keyed(batch: number): (application: object, index?: number) => object {
  const publishKeys = [{ name: 'studio', key: 'a-key-of-the-studio-1234' }];
  return (application, index = 0) => ({ ...application, name: `keyed-${batch}-${index}`, publishKeys });
}

function applicationXml(name: string): string {
  const elements = (names: readonly string[]) => names.map((each) => `<${each}/>`).join('');
  return `<Application><Name>${name}</Name><Type>live</Type><OutputProfiles><OutputProfile><Name>bypass</Name>
    <OutputStreamName>\${OriginStreamName}</OutputStreamName><Encodes><Video><Name>v</Name><Bypass>true</Bypass></Video>
    <Audio><Name>a</Name><Bypass>true</Bypass></Audio></Encodes></OutputProfile></OutputProfiles>
    <Providers>${elements(PROVIDERS)}</Providers><Publishers>${elements(PUBLISHERS)}</Publishers></Application>`;
}

/** Writes the configuration of the start with `names` as additional applications, and waits until it has been read. */
async function reload(server: TestServer, first: string, names: readonly string[]): Promise<void> {
  const read = server.log.length;
  writeFileSync(
    server.config,
    first.replace('</Application>', () => `</Application>${names.map(applicationXml).join('\n')}`),
  );
  process.kill(server.pid, 'SIGHUP');
  await until('the reload', () => /read again/.test(server.log.slice(read)), { deadlineMs: 60_000 });
}

/** The longest delay during each piece of work, ms. */
async function sample(main: string): Promise<ReadonlyMap<string, number>> {
  const watch: TurnWatch = turnWatch();
  const server = await startServer({ main, env: watch.env });
  const found = new Map<string, number>();
  const measure = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    await delay(SETTLE_MS);
    await watch.delays();
    await work();
    await delay(SETTLE_MS);
    found.set(name, Math.max(0, ...(await watch.delays())));
  };
  const { api } = server;
  try {
    const folder = path.join(server.state, 'schedules');
    mkdirSync(folder);
    const providers = { schedule: { mediaRootDir: server.state, scheduleFilesDir: folder }, multiplex: { muxFilesDir: folder } };
    await api.create(HOST, [{ name: 'aside', host: { names: ['aside.example'] } }]);
    await api.create(`${HOST}/aside/apps`, [{ name: 'app', type: 'live', providers }]);
    // The code of each kind of work runs for the first time.
    for (const name of ['first', 'second']) await api.create(CHANNELS, scheduleOf(name));
    await measure('schedule of 10 000 items, written through the API', () => api.create(CHANNELS, scheduleOf('third')));
    await measure('  shown by the API', () => api.get(`${CHANNELS}/third`));
    await measure('  found as a file', async () => {
      writeFileSync(path.join(folder, 'fourth.sch'), formatScheduleFile(definitionFromJson(scheduleOf('fourth'))));
      await until('the channel', async () => (await api.get<string[]>(CHANNELS)).includes('fourth'));
    });
    await measure('  refused: the last item is wrong', () => api.call('POST', CHANNELS, faultySchedule()));
    await measure(`multiplex channel of ${MUX_TRACKS} tracks, found as a file`, async () => {
      writeFileSync(path.join(folder, 'mux.mux'), muxText('mux'));
      await until('the channel', async () => (await api.get<string[]>(`${HOST}/aside/apps/app/multiplexChannels`)).includes('mux'));
    });
    await measure('/openapi.json, the first', () => api.call('GET', '/openapi.json'));
    const first = readFileSync(server.config, 'utf8');
    const names = Array.from({ length: APPLICATIONS }, (_, n) => `many${n}`);
    await measure(`reload, ${APPLICATIONS} applications added`, () => reload(server, first, names));
    await reload(server, first, names);
    await measure('  nothing changed', () => reload(server, `${first}\n`, names));
    await measure('  one removed', () => reload(server, first, names.slice(1)));
    const applications = names
      .slice(0, CREATED)
      .map((name) => ({ name, type: 'live', providers: { rtmp: {} }, publishers: { llhls: {} } }));
    const host = { name: 'other', host: { names: ['other.example'] }, applications };
    await measure(`virtual host with ${CREATED} applications in one request`, () => api.create(HOST, [host]));
    const one = `${HOST}/other/apps`;
    for (let batch = 0; batch < CREATED / BATCH; batch += 1) await api.create(one, applications.slice(0, BATCH).map(keyed(batch)));
    await measure(`  one more application, with a key`, () => api.create(one, [keyed(CREATED)(applications[0] ?? {})]));
    return found;
  } finally {
    await server.close();
  }
}

export async function run({ rounds }: BenchOptions): Promise<Report> {
  const own: ReadonlyMap<string, number>[] = [];
  const others: ReadonlyMap<string, number>[] = [];
  for (let round = 0; round < rounds; round += 1) {
    if (OTHER !== '') others.push(await sample(OTHER));
    own.push(await sample(MAIN));
  }
  const of = (samples: readonly ReadonlyMap<string, number>[], name: string): number => median(samples.map((each) => each.get(name) ?? 0));
  const figures = [...(own[0]?.keys() ?? [])].map((name): Figure => {
    const figure = { name, unit: 'ms', value: of(own, name) };
    return others.length > 0 ? { ...figure, baseline: of(others, name) } : { ...figure, target: TARGET_MS };
  });
  return {
    bench: 'turns',
    figures,
    notes: ['longest delay of a timer that is due each 10 ms; on a busy machine the wait for a processor is part of it'],
  };
}
