/** Duration of Opus packets by their table-of-contents byte, RFC 6716 §3.1. */
import { ProtocolError } from '../../util/protocol-error.ts';

/** Samples at 48 kHz per frame, by the low bits of the configuration number. */
const SILK_FRAMES: readonly number[] = [480, 960, 1920, 2880];
const HYBRID_FRAMES: readonly number[] = [480, 960];
const CELT_FRAMES: readonly number[] = [120, 240, 480, 960];
const FIRST_HYBRID = 12;
const FIRST_CELT = 16;
/** A packet lasts at most 120 ms. */
const MAX_PACKET_SAMPLES = 5760;

/** Samples at 48 kHz in a packet. Throws `OPUS_PACKET` for an empty or impossible packet. */
export function opusPacketSamples(packet: Uint8Array): number {
  const toc = packet[0];
  if (toc === undefined) throw new ProtocolError('OPUS_PACKET', 'empty packet', 0);
  const samples = frameSamples(toc >> 3) * frameCount(packet, toc & 3);
  if (samples === 0 || samples > MAX_PACKET_SAMPLES) {
    throw new ProtocolError('OPUS_PACKET', `packet of ${samples} samples, 1 to ${MAX_PACKET_SAMPLES} allowed`, 0);
  }
  return samples;
}

function frameSamples(configuration: number): number {
  if (configuration >= FIRST_CELT) return CELT_FRAMES[configuration & 3] ?? 0;
  if (configuration >= FIRST_HYBRID) return HYBRID_FRAMES[configuration & 1] ?? 0;
  return SILK_FRAMES[configuration & 3] ?? 0;
}

function frameCount(packet: Uint8Array, code: number): number {
  if (code === 0) return 1;
  if (code < 3) return 2;
  const count = packet[1];
  if (count === undefined) throw new ProtocolError('OPUS_PACKET', 'frame count byte missing', 1);
  return count & 0x3f;
}
