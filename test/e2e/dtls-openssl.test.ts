/** The DTLS handshake with OpenSSL's program, and the end of the connection in both directions. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { loadAddon } from '../../src/native/addon.ts';
import { createCertificate } from '../../src/services/webrtc/transport/dtls-certificate.ts';
import type { DtlsEndpoint } from '../../src/services/webrtc/transport/fanout/fanout.ts';
import { NativeFanout } from '../../src/services/webrtc/transport/fanout/native-fanout.ts';
import { SrtpProfile } from '../../src/wire/srtp/profile.ts';
import { Child } from '../harness/child.ts';
import { until } from '../harness/poll.ts';

const { AEAD_AES_128_GCM, AES128_CM_SHA1_80 } = SrtpProfile;
/** Cipher suites with the SRTP profiles that the client offers, and the negotiated profile. */
const SUITES = [
  ['ECDHE-ECDSA-AES128-GCM-SHA256', 'SRTP_AEAD_AES_128_GCM', AEAD_AES_128_GCM],
  ['ECDHE-ECDSA-AES256-GCM-SHA384', 'SRTP_AES128_CM_SHA1_80', AES128_CM_SHA1_80],
  ['ECDHE-ECDSA-CHACHA20-POLY1305', 'SRTP_AES128_CM_SHA1_32:SRTP_AES128_CM_SHA1_80', AES128_CM_SHA1_80],
  ['ECDHE-ECDSA-AES128-SHA', 'SRTP_AES128_CM_SHA1_80:SRTP_AEAD_AES_128_GCM', AEAD_AES_128_GCM],
] as const;

const own = createCertificate(Date.now());
const peer = createCertificate(Date.now());
let folder = '';
let fanout: NativeFanout;
const children: Child[] = [];
const sockets: Socket[] = [];

beforeAll(() => {
  const loaded = loadAddon();
  if (loaded.addon === null) throw new Error(`the addon is not built: ${loaded.reason}`);
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-dtls-'));
  writeFileSync(path.join(folder, 'cert.pem'), peer.certificate);
  writeFileSync(path.join(folder, 'key.pem'), peer.key);
  const nothing = (): void => undefined;
  const listener = { stun: nothing, dtls: nothing, rtcp: nothing, rtp: nothing, tcp: nothing };
  fanout = new NativeFanout(loaded.addon, { certificate: own, listener, threads: 1 });
});

afterEach(async () => {
  for (const child of children.splice(0)) await child.kill();
  for (const socket of sockets.splice(0)) socket.close();
});

afterAll(() => {
  fanout.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Server {
  readonly endpoint: DtlsEndpoint;
  readonly port: number;
  connected: boolean;
  profile: SrtpProfile | null;
  ended: string;
}

async function listen(): Promise<Server> {
  const socket = createSocket('udp4');
  sockets.push(socket);
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  let from = { port: 0, address: '' };
  const server: Server = {
    endpoint: fanout.openDtls('server', {
      send: (datagram) => socket.send(datagram, from.port, from.address),
      connected: ({ profile }) => {
        server.connected = true;
        server.profile = profile;
      },
      closed: (reason) => {
        server.ended = reason;
      },
    }),
    port: socket.address().port,
    connected: false,
    profile: null,
    ended: '',
  };
  socket.on('message', (datagram, info) => {
    from = info;
    server.endpoint.receive(datagram);
  });
  return server;
}

/** Without `stay` it closes the connection after the handshake. */
function openssl(port: number, suite: string, profiles: string, stay: boolean): Child {
  const child = new Child(requireProgram('openssl'), [
    ...['s_client', '-dtls1_2', '-connect', `127.0.0.1:${port}`, '-cipher', suite, '-use_srtp', profiles],
    ...['-cert', path.join(folder, 'cert.pem'), '-key', path.join(folder, 'key.pem'), ...(stay ? ['-ign_eof'] : [])],
  ]);
  children.push(child);
  return child;
}

test.each(SUITES)('openssl connects with %s and %s, and gets the close message', async (suite, profiles, profile) => {
  const server = await listen();
  const child = openssl(server.port, suite, profiles, true);
  await until('the handshake', () => server.connected);
  await until('the client to be done', () => child.stdout.includes(suite));
  server.endpoint.close();
  await child.exited;
  expect(child.stdout).toContain(profile === AEAD_AES_128_GCM ? 'SRTP_AEAD_AES_128_GCM' : 'SRTP_AES128_CM_SHA1_80');
  expect(server.profile).toBe(profile);
});

test.each(SUITES)('openssl connects with %s and %s, and ends it', async (suite, profiles) => {
  const server = await listen();
  openssl(server.port, suite, profiles, false);
  await until('the handshake', () => server.connected);
  await until('the end of the session', () => server.ended !== '');
  expect(server.ended).toBe('the peer closed');
});
