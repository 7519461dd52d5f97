/** Every TLS port of a whole server cuts handshakes that are not finished in time, and leaves those alone that are. */
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RecordingLogger } from '../test/fakes/recording-logger.ts';
import { selfSigned } from '../test/fakes/self-signed.ts';
import { clientHello } from '../test/fakes/slow-client.ts';
import { freePorts } from '../test/harness/ports.ts';
import { MillraceServer } from './server.ts';

/** Ten seconds take two. */
const PATIENCE = 0.2;
const HANDSHAKE_MS = 10_000 * PATIENCE;
const TLS = '<TLS><CertPath>server.crt</CertPath><KeyPath>server.key</KeyPath></TLS>';

let folder: string;
let server: MillraceServer;
let ports: { readonly rtmps: number; readonly https: number; readonly api: number };
const sockets: Socket[] = [];

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-stalled-'));
  const { cert, key } = selfSigned('localhost');
  writeFileSync(path.join(folder, 'server.crt'), cert);
  writeFileSync(path.join(folder, 'server.key'), key);
  const [rtmp = 0, rtmps = 0, https = 0, api = 0] = await freePorts(4);
  ports = { rtmps, https, api };
  const configFile = path.join(folder, 'Server.xml');
  writeFileSync(
    configFile,
    `<Server version="8"><Name>stalled</Name><Type>origin</Type><IP>127.0.0.1</IP>
      <Bind>
        <Managers><API><TLSPort>${api}</TLSPort></API></Managers>
        <Providers><RTMP><Port>${rtmp}</Port><TLSPort>${rtmps}</TLSPort></RTMP></Providers>
        <Publishers><LLHLS><TLSPort>${https}</TLSPort></LLHLS></Publishers>
      </Bind>
      <Managers><Host><Names><Name>*</Name></Names>${TLS}</Host></Managers>
      <VirtualHosts><VirtualHost><Name>default</Name><Host><Names><Name>*</Name></Names>${TLS}</Host></VirtualHost></VirtualHosts>
    </Server>`,
  );
  server = await MillraceServer.start({
    configFile,
    stateFolder: path.join(folder, 'state'),
    logger: new RecordingLogger(),
    timeoutScale: PATIENCE,
  });
}, 30_000);

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Connects and says what `speak` says; resolves when the server has hung up, with the ms since the call. */
async function stalled(port: number, speak: (socket: Socket) => void): Promise<number> {
  const from = performance.now();
  const socket = connect({ port, host: '127.0.0.1' });
  sockets.push(socket);
  socket.on('error', () => undefined);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await once(socket, 'connect');
  speak(socket.resume());
  await closed;
  return performance.now() - from;
}

/** Where clients stop in the handshake. */
function mannersOf(hello: Buffer): ((socket: Socket) => void)[] {
  const trickle = (socket: Socket): void => {
    let said = 0;
    const timer = setInterval(() => {
      if (said < hello.length && socket.writable) socket.write(hello.subarray(said, said + 1));
      said += 1;
    }, HANDSHAKE_MS / 10);
    socket.once('close', () => clearInterval(timer));
  };
  const say = (bytes: Buffer) => (socket: Socket) => void socket.write(bytes);
  return [() => undefined, say(hello.subarray(0, hello.length >> 1)), say(hello), trickle];
}

test.each(['rtmps', 'https', 'api'] as const)('%s', { timeout: 60_000 }, async (name) => {
  const port = ports[name];
  const manners = mannersOf(await clientHello());
  // Silent, but its handshake was finished: its first request has twice the time, and began earlier. (RTMP has a limit of its own then.)
  let isGone = false;
  if (name !== 'rtmps') {
    const good = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] });
    sockets.push(good);
    good.on('error', () => undefined);
    await once(good, 'secureConnect');
    good.resume().once('close', () => {
      isGone = true;
    });
  }
  const times = await Promise.all(manners.map((speak) => stalled(port, speak)));
  expect(isGone).toBe(false);
  for (const time of times) expect(time).toBeGreaterThan(HANDSHAKE_MS * 0.9);
});
