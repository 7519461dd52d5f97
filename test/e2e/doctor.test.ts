/** `millrace doctor` as a process, on a machine with something missing. */
import { execFileSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseStun, StunAttribute, StunType, serializeStun, xorMappedAddress } from '../../src/wire/stun/stun-message.ts';
import { Child } from '../harness/child.ts';
import { COMPILED } from '../harness/compiled-code.ts';
import { freePorts } from '../harness/ports.ts';
import { MAIN, startServer } from '../harness/server.ts';
import { type ServerPorts, type ServerSettings, serverXml } from '../harness/server-xml.ts';

const DEADLINE_MS = 60_000;
const PUBLIC = '203.0.113.77';
const NAMES = [
  ...[
    'configuration',
    'ports',
    'reach',
    'folders',
    'certificates',
    'descriptors',
    'udp-buffers',
    'container',
    'addon',
    'sandbox',
    'ffmpeg',
    'gpu',
  ],
  ...['ulimits', 'clock', 'ipv6', 'public-address'],
];

interface Answer {
  readonly ok: boolean;
  readonly checks: readonly { readonly name: string; readonly status: string; readonly text: string; readonly remedy?: string }[];
}

/** A temporary folder with a configuration. */
async function configured(settings: ServerSettings = {}, own: Partial<ServerPorts> = {}, change = (xml: string) => xml) {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-doctor-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [rtmp = 0, http = 0, api = 0, ice = 0, relay = 0] = await freePorts(5);
  const ports = { rtmp, http, api, ice, relay, ...own };
  const config = path.join(folder, 'Server.xml');
  writeFileSync(config, change(serverXml(ports, settings)));
  return { folder, config, state: path.join(folder, 'state'), ports };
}

/** Runs it through `before`, a program that starts another program. */
async function doctor(
  { config, state }: { readonly config: string; readonly state: string },
  { args = ['--json'], before = [], env = {} }: { args?: readonly string[]; before?: readonly string[]; env?: NodeJS.ProcessEnv } = {},
) {
  const [program = '', ...rest] = [...before, process.execPath, MAIN, 'doctor', '--config', config, '--state', state, ...args];
  const child = new Child(program, rest, { cwd: tmpdir(), env: { ...process.env, ...COMPILED, ...env }, name: 'millrace doctor' });
  try {
    const { code } = await child.ended(DEADLINE_MS);
    expect(child.stderr).toBe('');
    return { code, text: child.stdout };
  } finally {
    await child.kill();
  }
}

async function answer(...given: Parameters<typeof doctor>) {
  const { code, text } = await doctor(...given);
  const { ok, checks } = JSON.parse(text) as Answer;
  expect(ok).toBe(code === 0);
  return { code, checks, of: (name: string) => checks.filter((check) => check.name === name) };
}

test('it prints a line per check as text and as JSON, finds no problem, and leaves no files behind', async () => {
  const place = await configured({ webrtc: {} });
  const { code, checks, of } = await answer(place);
  expect(checks.filter(({ status }) => status === 'problem')).toEqual([]);
  expect(code).toBe(0);
  expect([...new Set(checks.map(({ name }) => name))].sort()).toEqual(NAMES.toSorted());
  const { ports } = place;
  for (const port of [ports.rtmp, ports.http, ports.api]) expect(of('ports')[0]?.text).toContain(`${port}`);
  expect(of('ffmpeg')[0]?.text).toMatch(/^FFmpeg \d+.* of node-av.*encodes H264,.*OPUS.*decodes H264/);
  expect(of('public-address')[0]?.text).toContain('not asked');
  expect(existsSync(place.state)).toBe(false);
  const lines = (await doctor(place, { args: [] })).text.trimEnd().split('\n');
  expect(lines).toHaveLength(checks.length);
  expect(lines.every((line) => /^(ok|warning) +[a-z0-9-]+ +\S/.test(line))).toBe(true);
});

test('it names an occupied port with its element and its process, over TCP and UDP', async () => {
  const [tcp = 0, udp = 0, other = 0] = await freePorts(3);
  const listener = createServer().listen(tcp, '127.0.0.1');
  const socket = createSocket('udp4').bind(udp, '127.0.0.1');
  await Promise.all([once(listener, 'listening'), once(socket, 'listening')]);
  onTestFinished(() => {
    listener.close();
    socket.close();
  });
  const { code, of } = await answer(await configured({ srt: { ingest: udp, egress: other } }, { rtmp: tcp }));
  expect(code).toBe(1);
  const [first, second, third, ...more] = of('ports');
  expect(first).toMatchObject({
    status: 'problem',
    text: expect.stringContaining(`TCP port ${tcp} of 127.0.0.1 (Server/Bind/Providers/RTMP/Port)`),
  });
  expect(first?.text).toContain(`(process ${process.pid})`);
  expect(second).toMatchObject({
    status: 'problem',
    text: expect.stringContaining(`UDP port ${udp} of 127.0.0.1 (Server/Bind/Providers/SRT/Port)`),
  });
  expect(second?.text).toContain(`(process ${process.pid})`);
  expect(third).toMatchObject({ status: 'ok', text: expect.stringContaining(`UDP ${other}`) });
  expect(more).toEqual([]);
});

test('ports of the running server with the same state folder are fine, ports of one with another folder are a problem', async () => {
  const [ingest = 0, egress = 0] = await freePorts(2);
  const server = await startServer({ webrtc: {}, srt: { ingest, egress } });
  onTestFinished(() => server.close());
  const own = await answer(server);
  expect(own.of('ports')).toEqual([
    expect.objectContaining({
      status: 'ok',
      text: expect.stringContaining(`in the server of this state folder (process ${server.pid}): TCP`),
    }),
  ]);
  expect(own.of('ports')[0]?.text).not.toContain('free');
  expect(own.of('reach')).toEqual([
    { name: 'reach', status: 'ok', text: expect.stringContaining(`SRT answers on 127.0.0.1:${ingest}, 127.0.0.1:${egress}; not tested`) },
  ]);
  expect(own.of('reach')[0]?.text).toContain(`'srt://HOST:${ingest}?streamid=`);
  expect(own.checks.filter(({ status }) => status === 'problem')).toEqual([]);
  expect(own.code).toBe(0);
  const foreign = await answer({ config: server.config, state: path.join(server.folder, 'other') });
  expect(foreign.code).toBe(1);
  expect(
    foreign.of('ports').filter(({ status, text }) => status === 'problem' && text.includes(`(process ${server.pid})`)).length,
  ).toBeGreaterThan(2);
});

test('a port of another program is a problem, while the other ports belong to the running server', async () => {
  const server = await startServer();
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  onTestFinished(async () => {
    listener.close();
    await server.close();
  });
  const { port } = listener.address() as AddressInfo;
  const config = path.join(server.folder, 'Changed.xml');
  writeFileSync(config, serverXml({ ...server.ports, rtmp: port }));
  const { code, of } = await answer({ config, state: server.state });
  expect(code).toBe(1);
  expect(of('ports').map(({ status, text }) => [status, text])).toEqual([
    ['problem', expect.stringMatching(new RegExp(`^TCP port ${port} of .* is in use by .*\\(process ${process.pid}\\)$`))],
    ['ok', expect.stringContaining(`in the server of this state folder (process ${server.pid}): TCP`)],
  ]);
});

test('it reports a port that this user may not open', async ({ skip }) => {
  const first = Number(readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8'));
  if (first < 100) skip('every user may open every port here');
  // Removes the rights of the superuser.
  const before = process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-net_bind_service'] : [];
  const { code, of } = await answer(await configured({}, { rtmp: 99 }), { before });
  expect(code).toBe(1);
  expect(of('ports')[0]).toMatchObject({ status: 'problem', text: expect.stringMatching(/^TCP port 99 of 127\.0\.0\.1 .* is privileged/) });
});

test('it reports unwritable folders of settings, recordings, dumps and events', async () => {
  const place = await configured();
  const [blocked, other, third] = ['a-file', 'another', 'third'].map((name) => path.join(place.folder, name)) as [string, string, string];
  for (const file of [blocked, other, third]) writeFileSync(file, '');
  const dump = `<Dumps><Dump><Enable>true</Enable><TargetStreamName>*</TargetStreamName><OutputPath>${other}/\${StreamName}</OutputPath></Dump></Dumps>`;
  const xml = serverXml(place.ports, { recordRoot: blocked, head: `<EventLog><Path>${third}</Path></EventLog>` }).replace(
    '<ChunkDuration>',
    `${dump}<ChunkDuration>`,
  );
  writeFileSync(place.config, xml);
  const { code, of } = await answer({ config: place.config, state: path.join(blocked, 'state') });
  expect(code).toBe(1);
  expect(of('folders').map(({ status, text }) => [status, text])).toEqual([
    ['problem', expect.stringMatching(/^the state folder cannot be written to: .*a-file\/state$/)],
    ['problem', expect.stringMatching(/^a RootPath of recordings cannot be written to: .*a-file$/)],
    ['problem', expect.stringMatching(/^the dump folder cannot be written to: .*another$/)],
    ['problem', expect.stringMatching(/^the event log folder cannot be written to: .*third$/)],
  ]);
  const good = await answer(place);
  expect(good.of('folders')[0]).toMatchObject({
    status: 'ok',
    text: expect.stringMatching(/^the state folder, .*: writable, .* are free$/),
  });
});

test('it reports too few file descriptors, and a file size limit', async () => {
  const before = ['prlimit', '--nofile=100', `--fsize=${2 ** 30}`];
  const { code, of } = await answer(await configured(), { before });
  expect(code).toBe(1);
  expect(of('descriptors')[0]).toMatchObject({ status: 'problem', text: expect.stringMatching(/^100 files and sockets may be open/) });
  expect(of('ulimits')[0]).toMatchObject({ status: 'warning', text: `max file size is ${2 ** 30} (ulimit -f): recordings end there` });
});

test('it asks only the named STUN server', async () => {
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  onTestFinished(() => void socket.close());
  let asked = 0;
  socket.on('message', (datagram, { port }) => {
    asked += 1;
    const { transaction } = parseStun(datagram);
    const attributes = [[StunAttribute.XOR_MAPPED_ADDRESS, xorMappedAddress(PUBLIC, 4711, transaction)]] as const;
    socket.send(serializeStun({ type: StunType.BINDING_SUCCESS, transaction, attributes, password: null }), port, '127.0.0.1');
  });
  const place = await configured();
  const stun = `127.0.0.1:${socket.address().port}`;
  await answer(place);
  expect(asked).toBe(0);
  const named = await answer(place, { args: ['--json', '--stun', stun] });
  expect(asked).toBeGreaterThan(0);
  expect(named.of('public-address')[0]).toMatchObject({
    status: 'warning',
    text: expect.stringContaining(`${PUBLIC}, says ${stun}: behind a NAT`),
  });
  const inFile = await configured({ head: `<StunServer>${stun}</StunServer>` });
  expect((await answer(inFile)).of('public-address')[0]).toMatchObject({ status: 'ok', text: expect.stringContaining(PUBLIC) });
  const silent = await answer(place, { args: ['--json', '--stun', '127.0.0.1:9'] });
  expect([silent.code, silent.of('public-address')[0]?.status]).toEqual([1, 'problem']);
});

test('it reads certificates and reports how long they are valid', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-doctor-tls-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const make = (name: string, days: number): string => {
    const [cert, key] = ['cert', 'key'].map((kind) => path.join(folder, `${name}-${kind}.pem`)) as [string, string];
    const options = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/CN=localhost'];
    execFileSync('openssl', ['req', '-x509', ...options, '-days', `${days}`, '-keyout', key, '-out', cert], { stdio: 'ignore' });
    return `<TLS><CertPath>${cert}</CertPath><KeyPath>${key}</KeyPath></TLS>`;
  };
  const [rtmp = 0, http = 0] = await freePorts(2);
  const judge = async (host: string) => (await answer(await configured({ tls: { rtmp, http, host } }))).of('certificates')[0];
  expect(await judge(make('good', 90))).toMatchObject({
    status: 'ok',
    text: expect.stringMatching(/^virtual host 'default', .*valid for (89|90) more day/),
  });
  const soon = make('soon', 3);
  expect(await judge(soon)).toMatchObject({ status: 'warning', text: expect.stringMatching(/valid for [23] more day/) });
  expect(await judge(soon.replace('soon-key', 'good-key'))).toMatchObject({
    status: 'problem',
    text: expect.stringContaining('is not that of the certificate'),
  });
});

test('it reports whether the addon loads, and continues with an unreadable configuration', async () => {
  const place = await configured();
  const off = await answer(place, { env: { MILLRACE_NATIVE: 'off', MILLRACE_SANDBOX: 'off' } });
  expect(off.checks.filter(({ status }) => status === 'problem')).toEqual([]);
  expect([off.code, off.of('addon')[0]?.status, off.of('sandbox')[0]?.status]).toEqual([0, 'warning', 'warning']);
  const gone = await answer(place, { env: { MILLRACE_NATIVE: '/nonexistent.node' } });
  expect([gone.code, gone.of('addon')[0]?.status]).toEqual([1, 'problem']);
  expect(gone.of('addon')[0]?.text).toContain('/nonexistent.node was not built');
  writeFileSync(place.config, '<Server>');
  const broken = await answer(place);
  expect([broken.code, broken.of('configuration')[0]?.status, broken.of('ffmpeg')[0]?.status]).toEqual([1, 'problem', 'ok']);
  expect(broken.of('ports')).toEqual([]);
});

test.for([
  [['--state', ''], '--state is empty'],
  [['--colour'], 'colour'],
  [['twice'], 'twice'],
] as const)('arguments %j are refused with the exit code 2', async ([args, message]) => {
  const child = new Child(process.execPath, [MAIN, 'doctor', ...args], { cwd: tmpdir(), env: { ...process.env, ...COMPILED } });
  expect((await child.ended(DEADLINE_MS)).code).toBe(2);
  expect([child.stdout, child.stderr]).toEqual(['', expect.stringContaining(message)]);
});
