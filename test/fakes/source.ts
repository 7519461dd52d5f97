/** Tracks and packets as providers pass them on, to test everything behind the providers. */
import type { SourceAudioTrack, SourcePacket, SourceVideoTrack } from '../../src/core/ingest.ts';
import { BitstreamFormat } from '../../src/media/codec.ts';
import { MILLISECONDS } from '../../src/media/timebase.ts';
import { ASC, AVCC } from '../fixtures/bitstreams.ts';

export function videoTrack(overrides: Partial<SourceVideoTrack> = {}): SourceVideoTrack {
  return {
    type: 'video',
    id: 0,
    timebase: MILLISECONDS,
    bitrateConf: 0,
    codec: 'H264',
    format: BitstreamFormat.LENGTH_PREFIXED,
    config: AVCC.baseline180,
    framerateConf: 30,
    width: 0,
    height: 0,
    ...overrides,
  };
}

export function audioTrack(overrides: Partial<SourceAudioTrack> = {}): SourceAudioTrack {
  return {
    type: 'audio',
    id: 1,
    timebase: MILLISECONDS,
    bitrateConf: 0,
    codec: 'AAC',
    format: BitstreamFormat.AAC_RAW,
    config: ASC.plainStereo48,
    sampleRate: 48_000,
    channels: 2,
    ...overrides,
  };
}

/** An access unit of one slice after a 4-byte length; its slice header is of type I or P. */
export function accessUnit(keyframe: boolean, size = 64): Uint8Array {
  const unit = Buffer.alloc(size, 0x55);
  unit.writeUInt32BE(size - 4, 0);
  unit[4] = keyframe ? 0x65 : 0x41;
  return unit;
}

/** Frame `index` of a 30 fps source with a keyframe every `gop` frames; timestamps are whole milliseconds from `startMs`. */
export function videoPacket(index: number, options: { gop?: number; startMs?: number; size?: number } = {}): SourcePacket {
  const keyframe = index % (options.gop ?? 30) === 0;
  const dts = (options.startMs ?? 0) + Math.round((index * 1000) / 30);
  return { trackId: 0, pts: dts, dts, keyframe, data: accessUnit(keyframe, options.size) };
}

/** AAC frame `index` of a 48 kHz source; timestamps are whole milliseconds from `startMs`. */
export function audioPacket(index: number, options: { startMs?: number } = {}): SourcePacket {
  const dts = (options.startMs ?? 0) + Math.round((index * 1024) / 48);
  return { trackId: 1, pts: dts, dts, keyframe: true, data: Buffer.alloc(32, index & 0xff) };
}
