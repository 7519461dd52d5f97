/** TLS and HTTP/2 of the addon: bytes before the handshake is over, and frames after it. */
import { openSync } from 'node:fs';
import { type TLSSocket, connect as tlsConnect } from 'node:tls';
import { DirectSecureListener } from '../../../src/delivery/http/secure/direct-secure-listener.ts';
import { DateLine } from '../../../src/delivery/http/status-line.ts';
import { DEFAULT_HTTP_LIMITS } from '../../../src/delivery/http-limits.ts';
import { type Handle, loadAddon, type NativeAddon } from '../../../src/native/addon.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { selfSigned } from '../../fakes/self-signed.ts';
import type { FuzzTarget } from '../support/fuzz-target.ts';

const { addon } = loadAddon();
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
/** Settings, a GET, a POST with a body, a ping, a window, a reset, a goodbye. */
const FRAMES = [
  '000006040000000000000400010000',
  '000009010500000001828487410178400161',
  '00000801040000000383844104746573740000050001000000036162636465',
  '0000080600000000000102030405060708',
  '00000408000000000000010000',
  '00000403000000000500000008',
  '0000080700000000000000000000000000',
].map((hex) => Buffer.from(hex, 'hex'));

/** A ClientHello with a server name and protocols, as `openssl s_client` begins. */
async function firstFlight(): Promise<Buffer> {
  const { createServer } = await import('node:net');
  return new Promise((resolve) => {
    const server = createServer((socket) =>
      socket.once('data', (bytes: Buffer) => {
        socket.destroy();
        server.close(() => resolve(bytes));
      }),
    ).listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      tlsConnect({ port, host: '127.0.0.1', servername: 'localhost', ALPNProtocols: ['h2', 'http/1.1'] }).on('error', () => {});
    });
  });
}

function freshTls(native: NativeAddon): FuzzTarget {
  const { cert, key } = selfSigned('localhost');
  const context: Handle = native.tlsContext(cert, key, 'DEFAULT', '', '', 0x303, true);
  const into = Buffer.alloc(128 * 1024);
  // A descriptor that is not a socket: all bytes to send remain in the session.
  const nowhere = openSync('/dev/null', 'w');
  return {
    name: 'tls-fresh',
    seeds: async () => {
      const hello = await firstFlight();
      return [hello, Buffer.concat([hello, hello]), Buffer.from('GET / HTTP/1.1\r\n\r\n'), Buffer.from('15030100020228', 'hex')];
    },
    run: (input) => {
      const connection = native.tlsOpen(context, nowhere, 10, 10, 1000);
      let sent = 0;
      const cut = (input[0] ?? 0) % (input.length + 1);
      for (const piece of [input.subarray(0, cut), input.subarray(cut)]) {
        native.tlsReceive(connection, piece, into, (name) => (name === 'none' ? null : context));
        sent += native.tlsTakeRest(connection).length;
        native.tlsRestSent(connection);
      }
      native.tlsClose(connection);
      native.tlsClose(connection);
      return sent;
    },
    // A certificate and the messages around it.
    most: (length) => 4096 + length,
    cost: 10,
  };
}

/** An HTTP/2 session that reads the input as frames, and then a request on another connection. */
function http2Frames(): FuzzTarget {
  let listener: DirectSecureListener | null = null;
  let port = 0;
  let requests = 0;
  async function open(): Promise<TLSSocket> {
    if (listener === null) {
      listener = DirectSecureListener.create({
        handler: {
          handle: (request, sink) => {
            requests += 1;
            request.header('cookie');
            if (request.target === '/wait') sink.wait({ aborted: () => {} });
            else sink.answer(200, 'A: b\r\n', [Buffer.alloc(20_000)], null);
          },
        },
        limits: DEFAULT_HTTP_LIMITS,
        commonHeaders: '',
        date: new DateLine(systemClock),
        http2: true,
      });
      listener?.setCertificates([{ hostNames: ['*'], ...selfSigned('localhost') }]);
      port = (await listener?.listen({ host: '127.0.0.1', port: 0 })) ?? 0;
    }
    const socket = tlsConnect({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] });
    socket.on('error', () => {});
    await new Promise<void>((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
    return socket;
  }
  return {
    name: 'http2-frames',
    seeds: () => [Buffer.concat(FRAMES), ...FRAMES.map((frame) => Buffer.concat([FRAMES[0] ?? frame, frame, frame]))],
    run: async (input) => {
      const before = requests;
      const socket = await open();
      const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
      socket.resume();
      socket.end(Buffer.concat([PREFACE, input]));
      await closed;
      return requests - before;
    },
    close: async () => {
      await listener?.close(0);
      listener = null;
    },
    most: (length) => 1 + length / 9,
    cost: 60,
  };
}

export const SECURE_TARGETS: readonly FuzzTarget[] = addon === null ? [] : [freshTls(addon), http2Frames()];
