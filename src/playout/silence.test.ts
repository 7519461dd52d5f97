import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildAudioSpecificConfig } from '../codecs/aac/audio-specific-config.ts';
import { buildOpusHead } from '../codecs/opus/opus-head.ts';
import { TransportOutput } from '../containers/mpegts/transport-output.ts';
import type { SourceAudioTrack } from '../core/ingest.ts';
import { MediaRouter } from '../core/media-router.ts';
import { AudioCodec, BitstreamFormat } from '../media/codec.ts';
import type { Packet } from '../media/packet.ts';
import { MPEG_90K } from '../media/timebase.ts';
import { SILENT_TRACK, silentFrame } from './silence.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-silence-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const aac = (sampleRate: number, channels: number): SourceAudioTrack => ({
  ...SILENT_TRACK,
  config: buildAudioSpecificConfig({ objectType: 2, sampleRate, channelConfiguration: channels === 8 ? 7 : channels }),
  ...{ sampleRate, channels },
});
const opus = (channels: number): SourceAudioTrack => ({
  ...SILENT_TRACK,
  ...{ codec: AudioCodec.OPUS, format: BitstreamFormat.RAW, config: buildOpusHead({ channels }), channels },
});
const mp3 = (sampleRate: number, channels: number): SourceAudioTrack => ({
  ...SILENT_TRACK,
  ...{ codec: AudioCodec.MP3, format: BitstreamFormat.RAW, config: null, sampleRate, channels },
});

it.each([
  ['AAC, mono', aac(44_100, 1), 1024 / 44.1],
  ['AAC, stereo', aac(48_000, 2), 1024 / 48],
  ['AAC, five and one', aac(48_000, 6), 1024 / 48],
  ['AAC, seven and one', aac(32_000, 8), 32],
  ['Opus, mono', opus(1), 20],
  ['Opus, stereo', opus(2), 20],
  ['MP3, mono', mp3(48_000, 1), 24],
  ['MP3, stereo', mp3(44_100, 2), 1152 / 44.1],
])('a silent frame of %s decodes to silence', (_what, track, ms) => {
  const frame = silentFrame(track)!;
  expect(frame.ms).toBeCloseTo(ms, 3);
  const packets: Packet[] = [];
  const chunks: Uint8Array[] = [];
  const router = new MediaRouter({ onTracks: () => undefined, onPacket: (packet) => packets.push(packet) });
  router.setTracks([track]);
  for (let index = 0; index < 50; index += 1) {
    const at = Math.round((index * frame.ms * MPEG_90K.den) / 1000);
    router.push({ trackId: track.id, pts: at, dts: at, keyframe: true, data: frame.data });
  }
  const output = new TransportOutput([packets[0]!.track], { onPayload: (payload) => chunks.push(payload), onEntryPoint: () => undefined });
  for (const packet of packets) output.push(packet);
  output.flush();
  const path = join(folder, 'silence.ts');
  writeFileSync(path, Buffer.concat(chunks));
  const sound = execFileSync('sh', ['-c', `ffmpeg -v error -i "${path}" -f f32le - 2>${join(folder, 'faults')}`], { maxBuffer: 1 << 26 });
  expect(execFileSync('cat', [join(folder, 'faults')], { encoding: 'utf8' })).toBe('');
  const samples = new Float32Array(sound.buffer, sound.byteOffset, sound.length / 4);
  expect(samples.length / track.channels / track.sampleRate).toBeGreaterThan((45 * ms) / 1000);
  expect(samples.every((sample) => Math.abs(sample) < 1e-6)).toBe(true);
});

it('a silent frame is null when it would need an encoder', () => {
  expect(silentFrame({ ...SILENT_TRACK, codec: AudioCodec.PCMU, config: null })).toBe(null);
  expect(silentFrame(mp3(22_050, 1))).toBe(null);
  expect(silentFrame({ ...SILENT_TRACK, config: new Uint8Array(1) })).toBe(null);
});
