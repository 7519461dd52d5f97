/** Recordings of OvenMediaEngine's OVT, packet by packet; see `test/fixtures/ovt-recorded`. */
import { readFileSync } from 'node:fs';
import type { OvtRequest } from '../../src/wire/ovt/message.ts';
import { OvtPayloadType, PACKET_HEADER_LENGTH, parsePacketHeader } from '../../src/wire/ovt/packet.ts';
import type { OvtScript } from './ovt-origin.ts';

export function recordedOvt(file: 'origin-ladder' | 'origin-h265' | 'edge-requests'): Buffer {
  return readFileSync(new URL(`../fixtures/ovt-recorded/${file}.bin`, import.meta.url));
}

/** The packets of a recording, headers included. */
export function packetsOf(bytes: Buffer): { readonly type: OvtPayloadType | null; readonly bytes: Buffer }[] {
  const packets: { readonly type: OvtPayloadType | null; readonly bytes: Buffer }[] = [];
  for (let at = 0; at < bytes.length; ) {
    const { type, payloadLength } = parsePacketHeader(bytes, at);
    const end = at + PACKET_HEADER_LENGTH + payloadLength;
    packets.push({ type, bytes: bytes.subarray(at, end) });
    at = end;
  }
  return packets;
}

/** Answers as in the recording: media follows the answer to `play`. */
export function replay(recording: Buffer): OvtScript {
  const packets = packetsOf(recording);
  const last = packets.at(-1)?.type === OvtPayloadType.RESPONSE ? -1 : undefined;
  const parts: Record<string, readonly { readonly bytes: Buffer }[]> = {
    describe: packets.slice(0, 1),
    play: packets.slice(1, last),
    stop: last === undefined ? [] : packets.slice(last),
  };
  return ({ command }: OvtRequest) => Buffer.concat((parts[command] ?? []).map(({ bytes }) => bytes));
}
