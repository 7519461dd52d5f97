/** `millrace ctl` against the API: every command, its output for people and programs, and its exit. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { commands } from '../../src/ctl/commands.ts';
import { runCtl } from '../../src/ctl/run.ts';
import { type ApiHarness, startApi, TOKEN } from './harness.ts';

let api: ApiHarness;
const ran = new Set<string>();

beforeEach(async () => {
  api = await startApi();
  await api.publish('default', 'app', 'live');
});
afterEach(() => api.close());

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command line of words separated by blanks; `input` is standard input. */
async function ctl(line: string, input = ''): Promise<Ran> {
  let [out, err] = ['', ''];
  const env = { MILLRACE_API: `http://127.0.0.1:${api.port}`, MILLRACE_TOKEN: TOKEN };
  const args = line.split(' ');
  const code = await runCtl(args, {
    env,
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    input: async () => input,
  });
  if (code === 0 && !args.includes('--help')) for (const { name } of commands) if (`${line} `.startsWith(`${name} `)) ran.add(name);
  return { code, out, err };
}

/** Parses the output of a command for programs. */
async function json(line: string, input?: string): Promise<unknown> {
  const { code, out, err } = await ctl(`${line} --json`, input);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return JSON.parse(out);
}

const lines = ({ out }: Ran) => out.trimEnd().split('\n');

function watch(id: string, kind: 'webrtc' | 'llhls' | 'srt', ended: string[] = []): void {
  const output = api.orchestrator.application('default', 'app')?.stream('live')?.outputs[0];
  output?.openSession({ kind, id, onTerminate: (reason) => ended.push(`${id} ${reason}`) });
}

describe('lists', () => {
  test('virtual hosts and applications', async () => {
    expect(lines(await ctl('vhosts'))[0]).toMatch(/^VIRTUAL HOST +HOST NAMES +APPLICATIONS$/);
    expect(lines(await ctl('vhosts'))[1]).toMatch(/^default .* app /);
    expect((await ctl('vhosts default')).out).toMatch(/^name +default$/m);
    expect(await json('vhosts')).toMatchObject([{ name: 'default', apps: expect.arrayContaining(['app']) }]);
    expect(lines(await ctl('apps default'))).toContainEqual(expect.stringMatching(/^default\/app .*LL-HLS.* 1$/));
    expect(await json('apps default/app')).toMatchObject({ name: 'app', type: 'live' });
  });

  test('streams, of all applications and of a named place', async () => {
    await api.publish('default', 'subs', 'other');
    const all = lines(await ctl('streams'));
    expect(all[0]).toMatch(/^STREAM +FROM +VIDEO +AUDIO +IN +OUT +VIEWERS +SINCE$/);
    expect(all[1]).toMatch(/^default\/app\/live +RTMP +H264 \d+x\d+ \d+ fps +\S.* 0 +\d{4}-/);
    expect(all[2]).toMatch(/^default\/subs\/other /);
    expect(lines(await ctl('streams default/subs'))).toHaveLength(2);
    expect(await json('streams default')).toMatchObject([{ stream: 'live', input: { sourceType: 'Rtmp' } }, { stream: 'other' }]);
    expect(await json('streams default/app/live')).toMatchObject({ name: 'live' });
  });

  test('recorded files', async () => {
    expect(await ctl('recorded')).toEqual({ code: 0, out: 'nothing was recorded\n', err: '' });
    expect(await json('recorded default/app/live')).toEqual([]);
    expect(await ctl('recorded default/app --url')).toMatchObject({ code: 2, err: expect.stringContaining('give VHOST/APP/STREAM') });
    expect((await ctl('recorded default/app --from yesterday')).err).toContain('from');
  });

  test('viewers with their protocols', async () => {
    expect(await ctl('sessions default/app/live')).toEqual({ code: 0, out: 'no viewers\n', err: '' });
    watch('a', 'webrtc');
    watch('b', 'llhls');
    // Another server does not count as a viewer.
    const edge = api.orchestrator
      .application('default', 'app')
      ?.stream('live')
      ?.outputs[0]?.openSession({ kind: 'ovt', id: 'e', onTerminate: () => undefined });
    expect(lines(await ctl('streams default/app'))[1]).toMatch(/ 2 +\d{4}-/);
    edge?.close();
    expect(lines(await ctl('sessions default/app/live')).map((line) => line.split(/ +/).slice(0, 2))).toEqual([
      ['SESSION', 'PROTOCOL'],
      ['b', 'LL-HLS'],
      ['a', 'WebRTC'],
    ]);
    expect(await json('sessions default/app/live --protocol webrtc')).toMatchObject([{ session: 'a', protocol: 'webrtc' }]);
    expect(await json('sessions default/app/live/b')).toHaveProperty('totalBytesOut', 0);
  });

  test('the past of the server, and of a stream', async () => {
    expect(await ctl('history')).toEqual({ code: 0, out: 'no samples yet: there is one every ten seconds\n', err: '' });
    watch('a', 'webrtc');
    await api.feed('default', 'app', 'live', 30);
    api.history.take();
    api.streamHistory.take();
    const server = lines(await ctl('history'));
    expect(server[0]).toMatch(/^TIME +IN +OUT +VIEWERS +CPU +EVENT LOOP +MEMORY$/);
    expect(server[1]).toMatch(/^\d{4}-\S+ +[\d.]+ k?bit\/s +0 bit\/s +1 +[\d.]+ % +[\d.]+ % +[\d.]+ MB$/);
    const stream = lines(await ctl('history default/app/live'));
    expect(stream[0]).toMatch(/^TIME +IN +OUT +FPS +GOP +VIEWERS$/);
    expect(stream[1]).toMatch(/^\d{4}-\S+ +[\d.]+ k?bit\/s +0 bit\/s +\d+ +\d+ +1$/);
    expect(await json('history default/app/live')).toMatchObject([{ stream: 'live', viewers: 1, throughputIn: expect.any(Number) }]);
    expect(await ctl('history default/app/nothere')).toMatchObject({ code: 1, out: '' });
    expect(await ctl('history default')).toMatchObject({ code: 2, err: expect.stringContaining("'default' is not VHOST/APP/STREAM") });
  });

  test('output profiles and statistics', async () => {
    expect((await ctl('profiles default/app')).out).toMatch(/^PROFILE +OUTPUT STREAM +VIDEOS +AUDIOS\n/);
    const [{ name = '' } = {}] = (await json('profiles default/app')) as { name?: string }[];
    expect(await json(`profiles default/app/${name}`)).toHaveProperty('name', name);
    for (const place of ['', ' default', ' default/app', ' default/app/live']) {
      expect((await ctl(`stats${place}`)).out).toMatch(/^connections\.webrtc +0$/m);
    }
  });

  test('the server', async () => {
    expect(await ctl('health')).toMatchObject({ code: 0, out: expect.stringMatching(/^(ok|degraded)\n/) });
    expect(await json('version')).toHaveProperty('version');
    expect(await json('server')).toHaveProperty('readOnlyVirtualHosts', ['default']);
    expect(await json('drain')).toEqual({ draining: true, publishers: expect.any(Number), sessions: expect.any(Number) });
    expect((await ctl('drain now')).code).toBe(2);
    expect(await json('resume')).toHaveProperty('draining', false);
    expect((await ctl('log-level debug')).out).toBe('debug\n');
    expect(await ctl('log-level')).toEqual({ code: 0, out: 'debug\n', err: '' });
    expect(await ctl('log-level loud')).toMatchObject({ code: 1, err: expect.stringContaining('level') });
    expect((await ctl('queues')).code).toBe(0);
    expect((await ctl('codecs')).out).toMatch(/^MODULE +MEDIUM /);
    expect(await ctl('srt')).toEqual({ code: 0, out: 'no SRT ports\n', err: '' });
    expect((await ctl('call GET /metrics')).out).toContain('# TYPE millrace_');
    expect(JSON.parse((await ctl('call get /v1/vhosts')).out)).toMatchObject({ response: ['default'], statusCode: 200 });
  });
});

describe('definitions', () => {
  test('are made, shown, changed and removed', async () => {
    expect(await ctl('create vhost größe --host a.example --host b.example')).toEqual({ code: 0, out: 'created vhost größe\n', err: '' });
    expect(await json('vhosts größe')).toMatchObject({ host: { names: ['a.example', 'b.example'] } });
    const app = { publishers: { llhls: { segmentDuration: 3 } }, providers: { rtmp: {} } };
    expect(await json('create app größe/tv+1 --file -', JSON.stringify(app))).toMatchObject({ name: 'tv+1', type: 'live' });
    expect((await ctl('patch app größe/tv+1 -f -', '{"publishers":{"llhls":{"segmentDuration":4}}}')).out).toBe('changed app größe/tv+1\n');
    expect(await json('apps größe/tv+1')).toMatchObject({ publishers: { llhls: { segmentDuration: 4 } } });

    const profile = { outputStreamName: 's', encodes: { videos: [{ name: 'v', bypass: true }] } };
    expect((await ctl('create profile größe/tv+1/p -f -', JSON.stringify([{ ...profile, name: 'p' }]))).code).toBe(0);
    expect((await ctl('patch profile größe/tv+1/p -f -', JSON.stringify({ ...profile, outputStreamName: 't' }))).code).toBe(0);
    expect(await json('profiles größe/tv+1')).toContainEqual(expect.objectContaining({ name: 'p', outputStreamName: 't' }));
    expect((await ctl('delete profile größe/tv+1/p')).out).toBe('removed profile größe/tv+1/p\n');
    expect((await ctl('delete app größe/tv+1')).code).toBe(0);
    expect((await ctl('delete vhost größe')).code).toBe(0);
    expect(await json('vhosts')).toHaveLength(1);
  });

  test('keys are shown once', async () => {
    await ctl('create vhost v --host v.example');
    await ctl('create app v/a');
    for (const [kind, list] of [
      ['publish-key', 'publish-keys'],
      ['play-token', 'play-tokens'],
    ]) {
      expect((await ctl(`create ${kind} v/a/k`)).out).toMatch(new RegExp(`^created ${kind} v/a/k: [\\w-]{20,}\n$`));
      expect(lines(await ctl(`${list} v/a`))[1]).toMatch(/^k +all +never +-$/);
      expect((await ctl(`delete ${kind} v/a/k`)).code).toBe(0);
      expect((await ctl(`${list} v/a`)).out).toBe('none\n');
    }
  });

  test('streams are pulled and ended, channels are made and ended', async () => {
    expect((await ctl('create stream default/app/cam --url rtsp://127.0.0.1:1/cam')).code).toBe(1);
    expect((await ctl('create stream default/app/cam --url rtsp://127.0.0.1:1/app/stream')).out).toBe('created stream default/app/cam\n');
    expect((await ctl('delete stream default/app/cam')).code).toBe(0);
    expect((await ctl('delete stream default/app/live')).code).toBe(0);
    expect(await json('streams default/app')).toEqual([]);

    api.scheduled.media.set('file://a.mp4', { length: 60_000 });
    const programs = [{ name: 'day', scheduled: '2025-12-01T00:00:00Z', repeat: true, items: [{ url: 'file://a.mp4' }] }];
    expect((await ctl('create channel default/app/tv -f -', JSON.stringify({ programs }))).out).toBe('created channel default/app/tv\n');
    const sourceStreams = [{ name: 'in', url: 'stream://default/app/x', trackMap: [{ sourceTrackName: 'a', newTrackName: 'b' }] }];
    expect((await ctl('create multiplex default/app/mux -f -', JSON.stringify({ sourceStreams }))).code).toBe(0);
    const rows = lines(await ctl('channels'));
    expect(rows[0]).toMatch(/^CHANNEL +KIND +STATE +NOW$/);
    expect(rows[1]).toMatch(/^default\/app\/tv +scheduled +(onair|offair)/);
    expect(rows[2]).toMatch(/^default\/app\/mux +multiplex +Pulling +Multiplex Channel/);
    expect(await json('channels default/app/mux')).toMatchObject({ state: 'Pulling' });
    expect(await json('channels default/app/tv')).toMatchObject({ stream: { name: 'tv' } });
    expect((await ctl('patch channel default/app/tv -f -', JSON.stringify({ programs }))).code).toBe(0);
    expect((await ctl('delete channel default/app/tv')).code).toBe(0);
    expect((await ctl('delete multiplex default/app/mux')).code).toBe(0);
    expect((await ctl('channels')).out).toBe('no channels\n');
  });

  test('settings without effect are reported in addition to the answer', async () => {
    await ctl('create vhost v --host v.example');
    const { code, err } = await ctl('create app v/a -f -', '{"publishers":{"webrtc":{"jitterBuffer":true}}}');
    expect([code, err]).toEqual([
      0,
      expect.stringMatching(/^note: these settings have no effect here: .*publishers\.webrtc\.jitterBuffer/),
    ]);
  });

  test.each([
    ['create app default/a -f -', '{"name":"b"}', 'the address says \'a\', but name in the JSON is "b"'],
    ['create channel default/app/a -f -', '{"stream":{"name":"b"}}', 'the address says \'a\', but stream.name in the JSON is "b"'],
    ['create app default/a -f -', '[{},{}]', '--file must hold one JSON object'],
    ['create app default/a -f -', '7', '--file must hold one JSON object'],
    ['create app default/a -f -', '{', 'standard input is not JSON: '],
    ['create app default/a -f /nowhere/a.json', '', '/nowhere/a.json cannot be read: ENOENT'],
    ['patch app default/app', '', 'give the JSON with --file FILE'],
    ['create app default', '', "'default' is not VHOST/APP"],
    ['create app', '', 'give VHOST/APP'],
    ['create app a/b c/d', '', 'give VHOST/APP'],
  ])('%s with %s is a wrong argument', async (line, input, sentence) => {
    expect(await ctl(line, input)).toMatchObject({ code: 2, out: '', err: expect.stringContaining(`millrace ctl: ${sentence}`) });
  });
});

describe('tasks', () => {
  test('recordings', async () => {
    expect((await ctl('recordings')).out).toBe('no recordings\n');
    expect((await ctl('record start default/app/live --id r1 --interval 60000')).out).toMatch(/^recording default\/app\/r1: \w+\n$/);
    expect((await ctl('record start default/app/later')).out).toMatch(/^recording default\/app\/later-\d{14}: ready\n$/);
    expect(lines(await ctl('recordings default'))).toContainEqual(expect.stringMatching(/^default\/app\/r1 +live +\w+ /));
    expect(await json('recordings default/app/r1')).toMatchObject({ id: 'r1', interval: 60_000 });
    expect((await ctl('record stop default/app/r1')).out).toMatch(/^recording default\/app\/r1: /);
    expect(await ctl('record stop default/app/r1')).toMatchObject({ code: 1, err: expect.stringContaining('r1') });
    expect(await ctl('recordings default/app/none')).toMatchObject({
      code: 1,
      err: "millrace ctl: there is no task 'none' in default/app\n",
    });
    expect(await ctl('record start default/app/live --interval soon')).toMatchObject({ code: 2 });
  });

  test('pushes, whose protocol is that of the URL', async () => {
    expect((await ctl('push start default/app/later --id p1 --url rtmp://127.0.0.1:1/app --key secret')).out).toBe(
      'push default/app/p1: ready\n',
    );
    expect((await ctl('push start default/app/later --id p2 --url srt://127.0.0.1:1')).code).toBe(0);
    expect((await ctl('push start default/app/later --id p3 --url udp://127.0.0.1:1')).code).toBe(0);
    expect(((await json('pushes')) as { protocol: string }[]).map(({ protocol }) => protocol)).toEqual(['rtmp', 'srt', 'mpegts']);
    expect(lines(await ctl('pushes default/app'))[1]).toMatch(/^default\/app\/p1 +later +ready +0 B +rtmp:\/\/127\.0\.0\.1:1\/app/);
    expect(await json('pushes default/app/p2')).toMatchObject({ id: 'p2' });
    expect((await ctl('push stop default/app/p1')).out).toBe('push default/app/p1 ended\n');
    expect(await ctl('push start default/app/live')).toMatchObject({ code: 2, err: expect.stringContaining('--url says where to') });
    expect(await ctl('push start default/app/live --url file:///x')).toMatchObject({ code: 2, err: expect.stringContaining('--protocol') });
    expect((await ctl('push start default/app/live --url rtmp://127.0.0.1:1/app')).code).toBe(1);
  });

  test('dumps', async () => {
    await api.feed('default', 'app', 'live', 60);
    const folder = join(api.folder, 'dump');
    expect((await ctl(`dump start default/app/live --id d1 --path ${folder}`)).out).toBe('dump d1 of live began\n');
    expect(lines(await ctl('dumps default/app/live'))[1]).toMatch(/^d1 +live +\//);
    expect((await ctl('dump stop default/app/live --id d1')).out).toBe('dumps of live ended\n');
  });
});

describe('actions', () => {
  test('viewers are disconnected, one or all', async () => {
    const ended: string[] = [];
    for (const id of ['a', 'b', 'c']) watch(id, 'llhls', ended);
    expect((await ctl('kick default/app/live/a')).out).toBe('disconnected: 1\n');
    expect(ended).toEqual([expect.stringMatching(/^a /)]);
    // A mistake in the last argument is reported before any argument is processed.
    expect((await ctl('kick default/app/live/b default/app/live')).code).toBe(2);
    expect(ended).toHaveLength(1);
    expect((await ctl('kick default/app/live --all')).out).toBe('disconnected: 2\n');
    expect(ended).toHaveLength(3);
    expect((await ctl('kick')).code).toBe(2);
    expect((await ctl('kick default/app/live/none')).code).toBe(1);
  });

  test('events and subtitles are put onto a stream, and its playlists are ended', async () => {
    await api.feed('default', 'app', 'live', 60);
    const event = { eventFormat: 'id3v2', events: [{ frameType: 'TXXX', info: 'a', data: 'b' }] };
    expect((await ctl('send-event default/app/live -f -', JSON.stringify(event))).out).toBe('sent\n');
    expect((await ctl('send-event default/app/live -f -', JSON.stringify([event, event]))).out).toBe('sent\n');
    const half = await ctl('send-event default/app/live -f -', JSON.stringify([event, { eventFormat: 'sei', events: [{}] }]));
    expect(half).toMatchObject({ code: 1, err: 'millrace ctl: item 2 of 2: eventFormat is not supported: [sei]\n' });
    expect((await ctl('conclude default/app/live')).code).toBe(0);

    await api.publish('default', 'subs', 's');
    await api.feed('default', 'subs', 's', 60);
    const file = join(api.folder, 'subtitles.json');
    mkdirSync(api.folder, { recursive: true });
    writeFileSync(file, JSON.stringify({ format: 'webvtt', data: [{ label: 'English', subtitles: [{ text: 'hi' }] }] }));
    expect(await ctl(`send-subtitles default/subs/s --file ${file}`)).toEqual({ code: 0, out: 'sent\n', err: '' });
  });

  test('certificates are loaded again', async () => {
    expect((await ctl('reload-certificate')).out).toBe('loaded\n');
    expect((await ctl('reload-certificate default')).out).toBe('loaded\n');
    expect((await ctl('reload-certificate --of-api')).code).toBe(1);
    expect((await ctl('reload-certificate default --of-api')).code).toBe(2);
  });
});

describe('ends', () => {
  test.each([
    ['vhosts nope', 1, '[HTTP] Could not find the virtual host: [nope] (404)'],
    ['streams default/nope', 1, '[HTTP] Could not find the application: [default/nope] (404)'],
    ['create vhost default --host x', 1, 'Conflict: the name is taken'],
    ['vhosts --token wrong', 1, '[HTTP] Invalid credential (401)'],
    ['streams default/app/..', 2, "No path of the API can hold '..' as {stream}"],
    ['streams default//live', 2, "'default//live' is not VHOST[/APP[/STREAM]]"],
    ['streams --colour', 2, "unknown option '--colour'\n"],
    ['streams --jsno', 2, "unknown option '--jsno' (did you mean --json?)\n"],
    ['--tokn secret streams', 2, "unknown option '--tokn' (did you mean --token?)\n"],
    ['push start default/app/live --ur x', 2, "unknown option '--ur' (did you mean --url?)\n"],
    ['streams --api', 2, "option '--api <value>' argument missing"],
    ['log --level loud', 1, '[HTTP] Invalid [level] parameter: it must be one of debug, info, warn, error (400)'],
    ['log --lines few', 2, "--lines is a number of lines, not 'few'"],
    ['log today', 2, "unexpected argument 'today'"],
    ['sessions', 2, 'give VHOST/APP/STREAM[/SESSION]'],
    ['health now', 2, "unexpected argument 'now'"],
    ['conquer', 2, "unknown command 'conquer'\n"],
    ['stream default/app', 2, "unknown command 'stream' (did you mean streams?)\n"],
    ['app default', 2, "unknown command 'app' (did you mean apps?)\n"],
    ['recrod start default/app/live', 2, "unknown command 'recrod' (did you mean record?)\n"],
    ['record strat default/app/live', 2, "record needs one of: start, stop, not 'strat' (did you mean start?)\n"],
    ['patch chanel default/app/tv', 2, "patch needs one of: app, profile, channel, not 'chanel' (did you mean channel?)\n"],
    ['--json', 2, 'give a command'],
    ['record', 2, 'record needs one of: start, stop\n'],
    ['completion fish', 2, 'completion is for bash or zsh'],
    ['vhosts --api http://127.0.0.1:1', 3, 'no answer from http://127.0.0.1:1'],
  ])('%s ends with %i: %s', async (line, code, sentence) => {
    const answer = await ctl(line);
    expect(answer).toMatchObject({ code, out: '' });
    expect(answer.err).toContain(`millrace ctl: ${sentence}`);
  });

  test('options may precede the command, and arguments after -- are not options', async () => {
    expect(JSON.parse((await ctl('--json --timeout 5 vhosts')).out)).toHaveLength(1);
    expect(await ctl('vhosts -- --help')).toMatchObject({ code: 1, err: expect.stringContaining('[--help]') });
  });

  test('control characters in names are escaped on the terminal', async () => {
    expect((await ctl('streams a//\u001b[2J')).err).toContain("'a//\\u001b[2J' is not");
    watch('a\u009b2J', 'llhls');
    expect((await ctl('sessions default/app/live')).out).toContain('a\\u009b2J  LL-HLS');
    const { out } = await ctl('sessions default/app/live --json');
    expect([out.includes('\u009b'), JSON.parse(out)]).toEqual([false, [expect.objectContaining({ session: 'a\u009b2J' })]]);
  });
});

describe('help', () => {
  test('lists all commands, the commands of a group, and each command', async () => {
    const { out } = await ctl('--help');
    for (const { name, summary } of commands)
      expect(out).toMatch(new RegExp(`^  ${name} +${summary.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`, 'm'));
    expect(await ctl('help')).toEqual({ code: 0, out, err: '' });
    expect((await ctl('record --help')).out).toMatch(/record start .*\n.*record stop /);
    for (const { name, usage, options = {} } of commands) {
      const own = await ctl(`${name} --help`);
      expect(own.code).toBe(0);
      expect(own.out).toContain(`Usage: millrace ctl ${name}${usage === '' ? '' : ` ${usage}`} [options]`);
      for (const option of Object.keys(options)) expect(own.out).toContain(`--${option}`);
    }
    expect(await runCtl([], { env: {}, out: () => undefined, err: () => undefined, input: async () => '' })).toBe(2);
  });
});

test('every command was run', () => {
  // These commands do not end: test/e2e/ctl.test.ts runs them.
  expect(commands.map(({ name }) => name).filter((name) => !ran.has(name))).toEqual(['watch', 'log']);
});
