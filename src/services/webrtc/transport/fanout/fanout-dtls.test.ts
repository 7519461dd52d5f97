import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { FANOUT_KINDS, FanoutBench, type FanoutKind, nothingHeard, WAIT } from '../../../../../test/fakes/fanout-bench.ts';
import { until } from '../../../../../test/harness/poll.ts';
import { loadAddon } from '../../../../native/addon.ts';
import { type SrtpKeys, SrtpProfile } from '../../../../wire/srtp/profile.ts';
import { createCertificate, formatFingerprint } from '../dtls-certificate.ts';
import { ScriptDtls } from '../script-fanout/script-dtls.ts';
import type { DtlsEndpoint, DtlsListener } from './fanout.ts';
import { NativeFanout } from './native-fanout.ts';

const { addon } = loadAddon();
const bench = new FanoutBench();

afterEach(() => {
  bench.close();
});

/** The implementations of DTLS, which do not depend on the way of sending. */
const IMPLEMENTATIONS = FANOUT_KINDS.filter((kind) => kind === 'native, segmented' || kind === 'script');

type Opener = (role: 'client' | 'server', listener: DtlsListener) => DtlsEndpoint;

interface EndState {
  isConnected: boolean;
  closed: string;
}

describe('DTLS', () => {
  const pairs: [FanoutKind, FanoutKind][] = FANOUT_KINDS.includes('native, segmented')
    ? [
        ['native, segmented', 'native, segmented'],
        ['native, segmented', 'script'],
        ['script', 'native, segmented'],
      ]
    : [['script', 'script']];

  /** Connects two ends, and returns them with the states of both. */
  async function joined(clientEnd: Opener, serverEnd: Opener) {
    const ends = [clientEnd, serverEnd].map(() => ({ isConnected: false, closed: '' })) as [EndState, EndState];
    const endpoints: DtlsEndpoint[] = [];
    const listenerOf = (n: 0 | 1): DtlsListener => ({
      send: (datagram) => {
        const copy = Buffer.from(datagram);
        setImmediate(() => endpoints[1 - n]?.receive(copy));
      },
      connected: () => {
        ends[n].isConnected = true;
      },
      closed: (reason) => {
        ends[n].closed = reason;
      },
    });
    endpoints[1] = serverEnd('server', listenerOf(1));
    endpoints[0] = clientEnd('client', listenerOf(0));
    const ticker = setInterval(() => {
      for (const endpoint of endpoints) endpoint.tick();
    }, 100);
    bench.onClose(() => {
      clearInterval(ticker);
      for (const endpoint of endpoints) endpoint.close();
    });
    await until('both peers are connected or closed', () => ends.every(({ isConnected, closed }) => isConnected || closed !== ''), WAIT);
    const [client, server] = endpoints as [DtlsEndpoint, DtlsEndpoint];
    return { client, server, ends };
  }
  const opener =
    (kind: FanoutKind): Opener =>
    (role, listener) =>
      bench.open(kind, nothingHeard()).openDtls(role, listener);

  test.each(pairs)(
    '%s as client, %s as server: forged records do not end the connection, a close of the peer does',
    async (client, server) => {
      const made = await joined(opener(client), opener(server));
      const record = (type: number, epoch: number, body: Buffer): Buffer =>
        Buffer.concat([Buffer.from([type, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0, 1, 0, body.length >> 8, body.length & 0xff]), body]);
      const hello = Buffer.concat([Buffer.from([1, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0, 60, 0xfe, 0xfd]), Buffer.alloc(58)]);
      for (const end of [made.server, made.client]) {
        for (const epoch of [0, 1]) {
          end.receive(record(21, epoch, Buffer.of(2, 40)));
          end.receive(record(21, epoch, Buffer.of(1, 0)));
          end.receive(record(21, epoch, randomBytes(26)));
          end.receive(record(22, epoch, hello));
          end.receive(record(22, epoch, randomBytes(60)));
          end.receive(record(23, epoch, randomBytes(60)));
        }
        end.receive(Buffer.alloc(12, 21));
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(made.ends).toEqual([
        { isConnected: true, closed: '' },
        { isConnected: true, closed: '' },
      ]);
      made.client.close();
      await until('the server knows of the close', () => made.ends[1].closed === 'the peer closed', WAIT);
    },
  );

  test.skipIf(addon === null)('a peer without a common SRTP profile gets a close message', async () => {
    if (addon === null) return;
    const nothing = (): void => undefined;
    const listener = { stun: nothing, dtls: nothing, rtcp: nothing, rtp: nothing, tcp: nothing };
    const keyless = new NativeFanout({ ...addon, dtlsKeys: () => null }, { certificate: bench.certificate, listener, threads: 1 });
    bench.onClose(() => keyless.close());
    const { ends } = await joined(opener('native, segmented'), (role, end) => keyless.openDtls(role, end));
    expect(ends[1]).toEqual({ isConnected: false, closed: 'the peer agreed to no SRTP profile' });
    await until('the client knows of the close', () => ends[0].closed === 'the peer closed', WAIT);
  });

  const thief: Opener = (role, listener) => {
    const { key } = createCertificate(Date.now());
    return new ScriptDtls(role, { ...bench.certificate, key }, listener);
  };

  test.each(IMPLEMENTATIONS)('%s: a certificate without its private key is refused', async (kind) => {
    const stolen = await joined(thief, opener(kind));
    expect(stolen.ends[1].isConnected).toBe(false);
    expect(stolen.ends[1].closed).toMatch(kind === 'script' ? /it does not have the key of its certificate$/ : /signature failure$/);
    const pretended = await joined(opener(kind), thief);
    expect(pretended.ends[0].isConnected).toBe(false);
    expect(pretended.ends[0].closed).toMatch(kind === 'script' ? /it does not have the key of its certificate$/ : /signature failure$/);
  });

  test.each(pairs)('%s as client and %s as server agree on keys and see the certificates', async (client, server) => {
    const ends = [
      { role: 'client', fanout: bench.open(client, nothingHeard()) },
      { role: 'server', fanout: bench.open(server, nothingHeard()) },
    ] as const;
    const done: { keys: SrtpKeys; fingerprint: Uint8Array }[] = [];
    const problems: string[] = [];
    const endpoints = [...ends].reverse().map(({ role, fanout }) => ({
      role,
      endpoint: fanout.openDtls(role, {
        send: (datagram) => {
          const copy = Buffer.from(datagram);
          setImmediate(() => endpoints.find((other) => other.role !== role)?.endpoint.receive(copy));
        },
        connected: (keys, fingerprint) => {
          done[role === 'client' ? 0 : 1] = { keys, fingerprint };
        },
        closed: (reason) => problems.push(`${role}: ${reason}`),
      }),
    }));
    const ticker = setInterval(() => {
      for (const { endpoint } of endpoints) endpoint.tick();
    }, 100);
    bench.onClose(() => clearInterval(ticker));
    await until(
      'both ends are connected',
      () => {
        if (problems.length > 0) throw new Error(problems.join(', '));
        return done[0] !== undefined && done[1] !== undefined;
      },
      WAIT,
    );
    const [a, b] = done;
    expect(Buffer.from(a?.keys.localKey ?? [])).toEqual(Buffer.from(b?.keys.remoteKey ?? []));
    expect(Buffer.from(a?.keys.remoteSalt ?? [])).toEqual(Buffer.from(b?.keys.localSalt ?? []));
    expect(a?.keys.profile).toBe(SrtpProfile.AEAD_AES_128_GCM);
    expect(formatFingerprint(a?.fingerprint ?? new Uint8Array())).toBe(bench.certificate.fingerprint);
    expect(formatFingerprint(b?.fingerprint ?? new Uint8Array())).toBe(bench.certificate.fingerprint);
    for (const { endpoint } of endpoints) endpoint.close();
  });

  test.each(IMPLEMENTATIONS)('%s: garbage ends the handshake or is ignored', (kind) => {
    const fanout = bench.open(kind, nothingHeard());
    for (let n = 0; n < 200; n += 1) {
      const endpoint = fanout.openDtls('server', {
        send: () => undefined,
        connected: () => expect.fail('connected'),
        closed: () => undefined,
      });
      const garbage = randomBytes(n + 1);
      garbage[0] = 22;
      endpoint.receive(garbage);
      if (n > 20) {
        // A record head that is right, with garbage inside.
        garbage.set([22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, n - 12]);
        endpoint.receive(garbage);
      }
      endpoint.tick();
      endpoint.close();
    }
  });
});

test.each(IMPLEMENTATIONS)('%s: a record of any insufficient length does not end the handshake', (kind) => {
  const ends: string[] = [];
  const endpoint = bench.open(kind, nothingHeard()).openDtls('server', {
    send: () => undefined,
    connected: () => undefined,
    closed: (reason) => ends.push(reason),
  });
  const record = Buffer.from([23, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 1, 0, 4, 1, 2, 3, 4]);
  for (let length = 1; length < record.length; length += 1) endpoint.receive(record.subarray(0, length));
  expect(ends).toEqual([]);
  endpoint.close();
});
