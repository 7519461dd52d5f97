/** DTLS of the addon and of the fallback: before, during and after the handshake. */

import { type Handle, loadAddon, type NativeAddon } from '../../../src/native/addon.ts';
import { createCertificate } from '../../../src/services/webrtc/transport/dtls-certificate.ts';
import { ScriptDtls } from '../../../src/services/webrtc/transport/script-fanout/script-dtls.ts';
import type { FuzzTarget } from '../support/fuzz-target.ts';
import { joinPackets, splitPackets } from '../support/packets.ts';

const { addon } = loadAddon();
const certificate = createCertificate(Date.now());
const CONNECTED = 1;
const CLOSED = 2;

/** The datagrams of both ends of a handshake, and whether it completed. */
function handshake(native: NativeAddon, context: Handle, disturb: (turn: number, to: Handle) => number = () => 0) {
  const [server, client] = [native.dtlsOpen(context, true), native.dtlsOpen(context, false)];
  let answers = 0;
  let toServer: readonly Buffer[] = native.dtlsReceive(client, Buffer.alloc(0)).datagrams;
  const fromClient: Buffer[] = [...toServer];
  const fromServer: Buffer[] = [];
  const states = { server: 0, client: 0 };
  for (let turn = 0; turn < 6 && toServer.length > 0; turn += 1) {
    answers += disturb(turn, server);
    const toClient = toServer.flatMap((datagram) => {
      const outcome = native.dtlsReceive(server, datagram);
      states.server = outcome.state;
      if (outcome.state === CONNECTED) native.dtlsKeys(server);
      return outcome.datagrams;
    });
    fromServer.push(...toClient);
    answers += disturb(turn, client);
    toServer = toClient.flatMap((datagram) => {
      const outcome = native.dtlsReceive(client, datagram);
      states.client = outcome.state;
      if (outcome.state === CONNECTED) native.dtlsKeys(client);
      return outcome.datagrams;
    });
    fromClient.push(...toServer);
  }
  return { server, client, fromClient, fromServer, answers, states };
}

function contextOf(native: NativeAddon): Handle {
  return native.dtlsContext(certificate.certificate, certificate.key);
}

function flights(): Uint8Array[] {
  if (addon === null) return [Buffer.alloc(13)];
  const { fromClient, fromServer } = handshake(addon, contextOf(addon));
  return [
    joinPackets(fromClient),
    joinPackets(fromServer),
    joinPackets([...fromServer, ...fromClient]),
    ...[...fromClient, ...fromServer].map((flight) => joinPackets([flight])),
  ];
}

/** Number of answers to datagrams of unknown senders: many answers would make us useful as an amplifier. */
function answersTo(native: NativeAddon, end: Handle, packets: readonly Uint8Array[]): number {
  return packets.reduce((sum, packet) => sum + native.dtlsReceive(end, packet).datagrams.length, 0) + native.dtlsTick(end).datagrams.length;
}

/** Flights of other handshakes, and mutations of them. */
const HOSTILE_FLIGHTS = {
  form: 'packets',
  seeds: flights,
  // A flight of a few datagrams for each step of the handshake, and alerts.
  most: (length: number): number => 128 + length,
} as const;

function nativeDtls(native: NativeAddon): FuzzTarget[] {
  const context = contextOf(native);
  return [
    {
      ...HOSTILE_FLIGHTS,
      name: 'dtls-native-fresh',
      run: (input) => {
        let answers = 0;
        for (const isServer of [true, false]) {
          const end = native.dtlsOpen(context, isServer);
          if (!isServer) native.dtlsReceive(end, Buffer.alloc(0));
          answers += answersTo(native, end, splitPackets(input));
          native.dtlsKeys(end);
          native.dtlsClose(end);
          if (native.dtlsReceive(end, input).state !== CLOSED) throw new Error('open after its end');
        }
        return answers;
      },
      cost: 5,
    },
    {
      ...HOSTILE_FLIGHTS,
      name: 'dtls-native-amid',
      run: (input) => {
        const packets = splitPackets(input);
        const at = (packets[0]?.length ?? 0) % 4;
        const { answers, server, client } = handshake(native, context, (turn, end) => (turn === at ? answersTo(native, end, packets) : 0));
        native.dtlsClose(server);
        native.dtlsClose(client);
        return answers;
      },
      cost: 20,
    },
    {
      ...HOSTILE_FLIGHTS,
      name: 'dtls-native-settled',
      run: (input) => {
        const { server, client, states } = handshake(native, context);
        if (states.server !== CONNECTED || states.client !== CONNECTED) throw new Error('the handshake itself did not work');
        let answers = 0;
        for (const packet of splitPackets(input)) {
          for (const end of [server, client]) {
            const outcome = native.dtlsReceive(end, packet);
            answers += outcome.datagrams.length;
            if (outcome.state !== CONNECTED) throw new Error('what is not the peer’s ended the connection');
          }
        }
        for (const datagram of native.dtlsClose(client).datagrams) {
          if (native.dtlsReceive(server, datagram).state !== CLOSED) throw new Error('the peer’s own end is not understood any more');
        }
        return answers;
      },
      most: () => 16 * 8 + 16,
      cost: 20,
    },
  ];
}

/** The library uses promises: its work ends some turns later. */
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

const scriptDtls: FuzzTarget = {
  ...HOSTILE_FLIGHTS,
  name: 'dtls-script',
  run: async (input) => {
    let answers = 0;
    for (const role of ['server', 'client'] as const) {
      let ended = 0;
      const end = new ScriptDtls(role, certificate, {
        send: () => {
          answers += 1;
        },
        connected: () => undefined,
        closed: () => {
          ended += 1;
        },
      });
      for (const packet of splitPackets(input)) end.receive(packet);
      await turns();
      end.close();
      end.receive(input);
      if (ended > 1) throw new Error(`ended ${ended} times`);
    }
    return answers;
  },
  cost: 30,
};

export const DTLS_TARGETS: readonly FuzzTarget[] = [...(addon === null ? [] : nativeDtls(addon)), scriptDtls];
