/** `millrace ctl` as a program: its defaults, exit codes, streams, and completion in real shells. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { MillraceClient } from '../../src/client/index.ts';
import { Child } from '../harness/child.ts';
import { COMPILED } from '../harness/compiled-code.ts';
import { until, within } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { publish } from '../harness/publisher.ts';
import { MAIN, ROOT, runCommand, startServer, type TestServer } from '../harness/server.ts';
import { openSession } from '../harness/viewer.ts';

const DEADLINE_MS = 30_000;

let folder: string;
let server: TestServer;
let ingest = 0;
let egress = 0;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-ctl-'));
  [ingest = 0, egress = 0] = await freePorts(2);
  // The server makes its token itself and keeps it in the state folder.
  server = await startServer({
    accessToken: '',
    segmentDuration: 1,
    srt: { ingest, egress },
    head: '<Storage><AllowedRoots><Path>recordings</Path></AllowedRoots></Storage>',
  });
});

afterAll(async () => {
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Settings {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly input?: string;
}

interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `millrace ctl` with `args` to its end. */
async function ctl(args: readonly string[], { cwd = folder, env = {}, input = '' }: Settings = {}): Promise<Ran> {
  const child = spawn(process.execPath, [MAIN, 'ctl', ...args], { cwd, env: { ...process.env, ...COMPILED, ...env } });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  // The program may end before it has read its input.
  child.stdin.on('error', () => undefined).end(input);
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  try {
    return { code: await within(`ctl ${args.join(' ')}`, DEADLINE_MS, ended), stdout, stderr };
  } finally {
    child.kill('SIGKILL');
  }
}

const tokenOfServer = (): string => readFileSync(path.join(server.state, 'access-token'), 'utf8').trim();
const local = (): string[] => ['--config', server.config, '--state', server.state];

test('finds the server of this machine by its configuration, and the token in its state folder', async () => {
  expect(await ctl(['vhosts', '--json', ...local()])).toEqual({
    code: 0,
    stderr: '',
    stdout: expect.stringContaining('"name": "default"'),
  });
  // With the paths as they are where the server was started.
  const there = await ctl(['vhosts', '--config', server.config], { cwd: server.folder });
  expect(there).toMatchObject({ code: 0, stdout: expect.stringMatching(/^default /m) });
});

test('reads address and token from the environment, and prefers options', async () => {
  const { base } = server.api;
  const env = { MILLRACE_API: base, MILLRACE_TOKEN: tokenOfServer() };
  expect((await ctl(['health'], { env: { MILLRACE_API: base } })).stdout).toBe('ok\n');
  expect((await ctl(['vhosts'], { env })).code).toBe(0);
  expect(await ctl(['vhosts', '--token', 'wrong'], { env })).toEqual({
    code: 1,
    stdout: '',
    stderr: 'millrace ctl: [HTTP] Invalid credential (401): the token is from --token\n',
  });
});

test('ends with 0, 1, 2 and 3', async () => {
  const [nobody = 0] = await freePorts(1);
  expect((await ctl(['version', ...local()])).code).toBe(0);
  expect(await ctl(['vhosts', 'nope', ...local()])).toMatchObject({ code: 1, stderr: expect.stringContaining('[nope]') });
  expect(await ctl(['conquer'])).toMatchObject({ code: 2, stderr: expect.stringContaining("unknown command 'conquer'") });
  expect(await ctl(['vhosts'])).toMatchObject({ code: 2, stderr: expect.stringContaining('access-token cannot be read') });
  const gone = await ctl(['health', '--api', `http://127.0.0.1:${nobody}`]);
  expect(gone).toMatchObject({
    code: 3,
    stderr: expect.stringMatching(
      new RegExp(`^millrace ctl: no answer from http://127\\.0\\.0\\.1:${nobody} \\(ECONNREFUSED\\)\\nNothing listens there: .*\\n$`),
    ),
  });
  expect(await ctl(['--help'])).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('record start') });
});

test('explains connection errors with a remedy, without a stack trace', async () => {
  const page = createServer((_request, response) => response.setHeader('content-type', 'text/html').end('<p>the proxy'));
  const [key, cert] = [path.join(folder, 'own.key'), path.join(folder, 'own.pem')];
  const options = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/CN=media.example', '-days', '2'];
  spawnSync('openssl', ['req', '-x509', ...options, '-keyout', key, '-out', cert], { stdio: 'ignore' });
  const secure = createSecureServer({ key: readFileSync(key), cert: readFileSync(cert) });
  const ports = await Promise.all(
    [page, secure].map(
      (one) => new Promise<number>((resolve) => one.listen(0, '127.0.0.1', () => resolve((one.address() as AddressInfo).port))),
    ),
  );
  const at = (scheme: string, port = 0): string[] => ['vhosts', '--token', 'x', '--api', `${scheme}://127.0.0.1:${port}`];
  const cases: readonly (readonly [args: readonly string[], code: number, said: RegExp])[] = [
    [at('http', ports[0]), 3, /^millrace ctl: no answer from \S+ \(the answer is not from the API: text\/html instead of JSON\)\n$/],
    [at('https', ports[0]), 3, /\(ERR_SSL_WRONG_VERSION_NUMBER\)\nThe port does not use TLS: .*\n$/],
    [at('https', ports[1]), 3, /\(DEPTH_ZERO_SELF_SIGNED_CERT\)\nIts certificate is not trusted on this machine: .*NODE_EXTRA_CA_CERTS/],
    [at('http', ports[1]), 3, /\nThe port does not use HTTP, or only with TLS/],
    [at('http', server.ports.http), 1, /^millrace ctl: HTTP status 404, and no answer of the API: /],
    [['streams', '--jsn'], 2, /^millrace ctl: unknown option '--jsn' \(did you mean --json\?\)\nTry 'millrace ctl streams --help'\.\n$/],
    [
      ['record', 'start', 'a/b/c', '--interval', 'x', ...local()],
      2,
      /number of milliseconds.*\nTry 'millrace ctl record start --help'\.\n$/,
    ],
  ];
  try {
    for (const [args, code, said] of cases)
      expect([args, await ctl(args)]).toEqual([args, { code, stdout: '', stderr: expect.stringMatching(said) }]);
    const trusted = await ctl(at('https', ports[1]), { env: { NODE_EXTRA_CA_CERTS: cert } });
    expect(trusted.stderr).toMatch(/ERR_TLS_CERT_ALTNAME_INVALID\)\nIts certificate is for another host name/);
    expect((await ctl(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  } finally {
    page.close();
    secure.close();
  }
});

test('shows whether the SRT ports answer', async () => {
  const { code, stdout } = await ctl(['srt', '--host', 'localhost', ...local()]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ *PORT {2}FOR +TRIED AT +ANSWERED +ROUND TRIP$/m);
  for (const [port, use] of [
    [ingest, 'publishers'],
    [egress, 'viewers'],
  ]) {
    expect(stdout).toMatch(new RegExp(`^ *${port}  ${use} +127\\.0\\.0\\.1 +yes +[\\d.]+ ms$`, 'm'));
  }
  expect(await ctl(['srt', 'all', ...local()])).toMatchObject({ code: 2 });
});

test('creates objects from a file or from standard input, even with odd characters in their names', async () => {
  const names = { host: { names: ['odd.example'] } };
  const made = await ctl(['create', 'vhost', 'größe', '--file', '-', ...local()], { input: JSON.stringify(names) });
  expect(made).toEqual({ code: 0, stdout: 'created vhost größe\n', stderr: '' });
  const file = path.join(folder, 'app.json');
  writeFileSync(file, JSON.stringify({ publishers: { llhls: {} } }));
  expect((await ctl(['create', 'app', "größe/a+b@c'd%", '-f', file, ...local()])).code).toBe(0);
  const { stdout } = await ctl(['apps', 'größe', '--json', ...local()]);
  expect(JSON.parse(stdout)).toMatchObject([{ vhost: 'größe', name: "a+b@c'd%" }]);
  expect((await ctl(['delete', 'vhost', 'größe', ...local()])).code).toBe(0);
});

test('runs the commands of the guide', async () => {
  const guide = readFileSync(path.join(ROOT, 'docs/guide/ctl.md'), 'utf8');
  const [block = ''] = guide.match(/(?<=```sh\n)millrace ctl create vhost[^`]+/) ?? [];
  expect(block.split('\n').filter((line) => line.startsWith('millrace ctl')).length).toBeGreaterThan(4);
  const script = `set -e; millrace() { "$NODE" "$MAIN" "$@"; }\n${block}`;
  const env = { NODE: process.execPath, MAIN, MILLRACE_API: server.api.base, MILLRACE_TOKEN: tokenOfServer() };
  const ran = spawnSync('bash', ['-c', script], { cwd: folder, env: { ...process.env, ...COMPILED, ...env }, encoding: 'utf8' });
  expect([ran.status, ran.stderr]).toEqual([0, '']);
  expect(ran.stdout).toMatch(
    /^created vhost shop\ncreated app shop\/tv\nrecording shop\/tv\/evening: ready\npush shop\/tv\/relay: ready\n/,
  );
  expect(ran.stdout).toMatch(/^shop\/tv\/evening +cam +ready +0 B/m);
  expect((await ctl(['delete', 'vhost', 'shop', ...local()])).code).toBe(0);
});

test('shows a published stream and its viewer, and disconnects the viewer', async () => {
  const api = new MillraceClient({ url: server.api.base, token: tokenOfServer() });
  const path = { vhost: 'default', app: 'app', stream: 'live' };
  const encoder = publish({ url: server.rtmp('live'), width: 320, height: 180, videoKbps: 200 });
  try {
    await encoder.sent(90);
    await openSession(server.http('live', 'llhls.m3u8'));
    // Delivery threads report their viewers with a delay.
    const counted = () => api.get('/v1/stats/current/vhosts/{vhost}/apps/{app}/streams/{stream}', { path });
    await until('the viewer to be counted', async () => (await counted()).connections.llhls > 0);
    const { stdout } = await ctl(['streams', ...local()]);
    expect(stdout).toMatch(/^default\/app\/live +RTMP +H264 320x180 30 fps +AAC 48000 Hz \d ch +\d+ kbit\/s /m);
    expect((await ctl(['sessions', 'default/app/live', ...local()])).stdout).toMatch(/^\S+ +LL-HLS +127\.0\.0\.1 /m);
    expect((await ctl(['kick', 'default/app/live', '--all', ...local()])).stdout).toMatch(/^disconnected: [1-9]\d*\n$/);
    expect((await ctl(['delete', 'stream', 'default/app/live', ...local()])).stdout).toBe('removed stream default/app/live\n');
  } finally {
    await encoder.stop();
  }
});

test('watches events, across a restart of the server, until it is ended', async () => {
  const watcher = new Child(process.execPath, [MAIN, 'ctl', 'watch', 'watched', '--types', 'config', ...local()], {
    cwd: folder,
    env: { ...process.env, ...COMPILED },
  });
  try {
    await watcher.printed(/^\S+ hello$/m, DEADLINE_MS);
    await ctl(['create', 'vhost', 'other', '--host', 'other.example', ...local()]);
    await ctl(['create', 'vhost', 'watched', '--host', 'watched.example', ...local()]);
    await ctl(['create', 'app', 'watched/a', ...local()]);
    await watcher.printed(/^\d{4}-\S+ vhost\.created watched\n\d{4}-\S+ app\.created watched\/a$/m, DEADLINE_MS);
    await server.restart();
    await watcher.printed(/^\S+ gap missed=null$/m, DEADLINE_MS);
    await ctl(['delete', 'vhost', 'watched', ...local()]);
    await watcher.printed(/^\S+ vhost\.deleted watched$/m, DEADLINE_MS);
    expect(watcher.stderr).toContain('; trying again\n');
  } finally {
    await watcher.stop();
  }
  expect(watcher.stdout).not.toContain('other');
});

test('follows the log from a level on, as lines and as JSON', async () => {
  const follow = (...args: string[]): Child =>
    new Child(process.execPath, [MAIN, 'ctl', 'log', ...args, ...local()], { cwd: folder, env: { ...process.env, ...COMPILED } });
  const [people, programs] = [follow('--lines', '5'), follow('--json', '--level', 'warn')];
  const refused = publish({ url: server.rtmp('live', 'nowhere'), width: 320, height: 180, fps: 5, videoKbps: 100, withoutAudio: true });
  try {
    await people.printed(/^\d{4}-\S+ info \S+ \S/m, DEADLINE_MS);
    await ctl(['reload-certificate', ...local()]);
    await people.printed(/^\d{4}-\S+ info api API request answered .*target=\/v1\/vhosts:reloadAllCertificates/m, DEADLINE_MS);
    await programs.printed(/"message":"[^"]*nowhere/, DEADLINE_MS);
  } finally {
    await Promise.all([people.stop(), programs.stop(), refused.stop()]);
  }
  const told = programs.stdout.match(/^.+$/gm)?.map((line) => JSON.parse(line) as { type: string; level: string }) ?? [];
  expect(told.filter(({ type, level }) => type !== 'log' || !['warn', 'error'].includes(level))).toEqual([]);
});

test('a reader that closes the pipe early causes no error', async () => {
  const command = `"$0" "$1" ctl call GET /openapi.json --config "$2" --state "$3" | head -c 10; echo " \${PIPESTATUS[0]}"`;
  const args = ['-c', command, process.execPath, MAIN, server.config, server.state];
  const { stdout, stderr } = spawnSync('bash', args, { cwd: folder, env: { ...process.env, ...COMPILED }, encoding: 'utf8' });
  expect([stdout, stderr]).toEqual(['{\n  "compo 0\n', '']);
});

describe('completion', () => {
  const typed: readonly (readonly [line: string, words: readonly string[]])[] = [
    ['millrace c', ['check', 'ctl']],
    ['millrace do', ['doctor']],
    ['millrace doctor --s', ['--state', '--stun']],
    ['millrace check --config x --ag', ['--against']],
    ['millrace sign-url rtmp://a/b --exp', ['--expire']],
    ['millrace ctl rec', ['record', 'recorded', 'recordings']],
    ['millrace ctl record ', ['start', 'stop']],
    ['millrace ctl record sta', ['start']],
    ['millrace ctl --json --api http://127.0.0.1:8081 create pl', ['play-token']],
    ['millrace ctl record start default/app/live --in', ['--info-path', '--interval']],
    ['millrace ctl kick default/app/live --a', ['--all', '--api']],
    ['millrace ctl completion ', ['bash', 'zsh']],
    ['millrace ctl streams --api ', []],
    ['millrace ctl conquer ', []],
  ];
  let scripts: Readonly<Record<string, string>>;

  beforeAll(async () => {
    scripts = { bash: (await ctl(['completion', 'bash'])).stdout, zsh: (await ctl(['completion', 'zsh'])).stdout };
    for (const [shell, script] of Object.entries(scripts)) writeFileSync(path.join(folder, `completion.${shell}`), script);
    writeFileSync(path.join(folder, 'ctl-file.json'), '');
  });

  function inBash(line: string): string[] {
    const program = `source completion.bash; COMP_LINE="$1"; COMP_POINT=\${#1}; _millrace; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', program, 'bash', line], { cwd: folder, encoding: 'utf8' });
    expect(stderr).toBe('');
    return stdout.split('\n').filter((word) => word !== '');
  }

  /** Sets `words` and `CURRENT` as the completion of zsh does; `compadd` prints its matching arguments. */
  function inZsh(line: string): string[] {
    const program = `
      compdef() { :; }; _files() { print -l -- *.json; }
      compadd() { shift; local each; for each in "$@"; do [[ $each == \${words[CURRENT]}* ]] && print -r -- $each; done; return 0; }
      source ./completion.zsh
      words=(\${(s: :)1}); [[ $1 == *' ' ]] && words+=(''); CURRENT=$#words
      _millrace`;
    const { stdout, stderr } = spawnSync(requireProgram('zsh'), ['-f', '-c', program, 'zsh', line], { cwd: folder, encoding: 'utf8' });
    expect(stderr).toBe('');
    return stdout.split('\n').filter((word) => word !== '');
  }

  test.each(typed)('bash: %s', (line, words) => expect(inBash(line).sort()).toEqual([...words].sort()));
  test.each(typed)('zsh: %s', (line, words) => expect(inZsh(line).sort()).toEqual([...words].sort()));

  test('every option of the program is completed after one of its commands', async () => {
    const help = await within('the help', DEADLINE_MS, runCommand(['--help']));
    const named = new Set([...help.stdout.matchAll(/--[a-z][a-z-]+/g)].map(([option]) => option));
    expect(named.size).toBeGreaterThan(20);
    const offered = new Set(['', 'serve ', 'check ', 'doctor ', 'sign-url ', 'ctl '].flatMap((words) => inBash(`millrace ${words}-`)));
    expect([...named].filter((option) => !offered.has(option))).toEqual([]);
  });

  test('bash completes at its prompt', async () => {
    // `script` provides a terminal.
    const shell = spawn(requireProgram('script'), ['-qec', 'bash --norc --noprofile -i', '/dev/null'], { cwd: folder });
    let shown = '';
    shell.stdout.setEncoding('utf8').on('data', (text: string) => {
      shown += text;
    });
    const ended = new Promise((resolve) => shell.once('close', resolve));
    try {
      shell.stdin.write("PS1='go''> '; source ./completion.bash\n");
      await until('the prompt', () => shown.includes('go> '), { deadlineMs: DEADLINE_MS });
      shell.stdin.write('millrace ctl send-sub\t');
      await until('the completed word', () => shown.includes('millrace ctl send-subtitles'), { deadlineMs: DEADLINE_MS });
    } finally {
      shell.stdin.end('\u0015exit\n');
      await within('the shell ends', DEADLINE_MS, ended).finally(() => shell.kill('SIGKILL'));
    }
  });

  test('files are offered for an option that takes a file', () => {
    expect(inBash('millrace ctl create app --file ctl-')).toEqual(['ctl-file.json']);
    expect(inZsh('millrace ctl create app --file ctl-')).toContain('ctl-file.json');
  });

  test('zsh completes at its prompt', () => {
    const program = `
      zmodload zsh/zpty
      zpty shell zsh -f -i
      zpty -w shell "PROMPT='> '; autoload -Uz compinit; compinit -u -D; source ./completion.zsh; print rea'dy'"
      zpty -r -m shell line '*ready*'
      zpty -n -w shell $'millrace ctl send-sub\\t'
      zpty -r -m shell line '*send-subtitles*'
      print -r -- "$line"
      zpty -d shell`;
    const { stdout } = spawnSync(requireProgram('zsh'), ['-f', '-c', program], { cwd: folder, encoding: 'utf8', timeout: DEADLINE_MS });
    expect(stdout).toContain('send-subtitles');
  });
});
