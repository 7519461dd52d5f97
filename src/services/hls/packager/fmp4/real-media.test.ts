import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { M3U8Parser, PlaylistLevelType } from 'hls.js';
import * as hlsParser from 'hls-parser';
import { createFile, MP4BoxBuffer } from 'mp4box';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EncodedMedia, encodeMedia } from '../../../../../test/support/encoded-media.ts';
import { LlhlsSimulation, type WatchedTrack } from '../../../../../test/validator/llhls-simulation.ts';
import { toSeconds } from '../../../../media/timebase.ts';
import type { Track } from '../../../../media/track.ts';

/** Audio decoders swallow their priming frames. */
const CODEC_DELAY = 2;

let directory = '';
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'millrace-llhls-'));
});
afterAll(() => {
  rmSync(directory, { recursive: true, force: true });
});

function simulate(media: EncodedMedia): LlhlsSimulation {
  const tracks = [media.video, media.audio].filter((track): track is NonNullable<typeof track> => track !== null) as Track[];
  const simulation = new LlhlsSimulation(tracks, { segmentDuration: 2 });
  simulation.run(media.packets);
  simulation.stream.concludeHlsLive();
  for (const track of simulation.watched) simulation.fetch(track);
  return simulation;
}

/** Init segment and all parts of a track as one file. */
function wholeFile(simulation: LlhlsSimulation, track: WatchedTrack): Buffer {
  const init = simulation.delivery.get(track.playlist?.segments[0]?.map ?? '').body;
  return Buffer.concat([init, ...track.parts.values()]);
}

/** Number of frames that ffprobe decodes, and its complaints. */
function decode(file: string): { frames: number; complaints: string } {
  const probe = execFileSync(
    'ffprobe',
    ['-v', 'error', '-count_frames', '-show_entries', 'stream=nb_read_frames', '-of', 'csv=p=0', file],
    { encoding: 'utf8' },
  );
  const complaints = execFileSync('sh', ['-c', `ffmpeg -v error -i "${file}" -f null - 2>&1`], { encoding: 'utf8' });
  return { frames: Number.parseInt(probe, 10), complaints };
}

describe.each([
  { video: 'libx264', audio: 'aac', videoCodec: /^avc1\./, audioCodec: /^mp4a\.40\.2$/, extra: ['-bf', '2'] },
  { video: 'libx265', audio: 'libopus', videoCodec: /^hvc1\./, audioCodec: /^opus$/i, extra: ['-preset', 'ultrafast'] },
  {
    video: 'libvpx-vp9',
    audio: 'libmp3lame',
    videoCodec: /^vp09\./,
    audioCodec: /^mp4a\.6b$/i,
    extra: ['-deadline', 'realtime', '-cpu-used', '8'],
  },
  { video: 'libsvtav1', audio: null, videoCodec: /^av01\./, audioCodec: null, extra: ['-preset', '12', '-svtav1-params', 'keyint=60'] },
])('$video with $audio', ({ video, audio, videoCodec, audioCodec, extra }) => {
  let media: EncodedMedia;
  let simulation: LlhlsSimulation;
  beforeAll(() => {
    media = encodeMedia({ video, audio, seconds: 8, extra });
    simulation = simulate(media);
  });

  /** Packets that have to arrive: audio that ends before the first frame is shown is left out. */
  function sent(track: WatchedTrack) {
    const first = media.packets.find((packet) => packet.track.type === 'video');
    const start = first === undefined ? 0 : toSeconds(first.pts, first.track.timebase);
    return media.packets.filter((packet) => {
      const middle = toSeconds(packet.pts + packet.duration / 2, packet.track.timebase);
      return packet.track.id === track.id && (packet.track.type === 'video' || middle >= start);
    });
  }

  it('obeys rfc8216bis', () => {
    expect(simulation.problems).toEqual([]);
    expect(simulation.watched).toHaveLength(audio === null ? 1 : 2);
  });

  it('decodes completely and without complaints', () => {
    for (const track of simulation.watched) {
      const file = join(directory, `${video}-${track.id}.mp4`);
      writeFileSync(file, wholeFile(simulation, track));
      const { frames, complaints } = decode(file);
      expect(complaints).toBe('');
      expect(frames).toBeGreaterThanOrEqual(sent(track).length - CODEC_DELAY);
    }
  });

  it('is read by mp4box with the codec the playlist announces', () => {
    for (const track of simulation.watched) {
      const file = createFile();
      const codecs: string[] = [];
      file.onReady = (info) => {
        for (const found of info.tracks) codecs.push(found.codec);
      };
      file.appendBuffer(MP4BoxBuffer.fromArrayBuffer(new Uint8Array(wholeFile(simulation, track)).buffer, 0));
      file.flush();
      expect(codecs).toHaveLength(1);
      expect(codecs[0]).toMatch(track.id === 0 ? videoCodec : (audioCodec ?? /^$/));
      expect(file.getTrackSamplesInfo(1).length).toBe(sent(track).length);
    }
  });

  it('is read by hls-parser and hls.js', () => {
    const master = simulation.delivery.get('llhls.m3u8').text;
    const parsed = hlsParser.parse(master);
    expect(parsed.isMasterPlaylist).toBe(true);
    expect(M3U8Parser.parseMasterPlaylist(master, 'http://h/app/stream/llhls.m3u8').levels).toHaveLength(1);
    for (const track of simulation.watched) {
      const text = simulation.delivery.get(track.uri).text;
      expect(hlsParser.parse(text).isMasterPlaylist).toBe(false);
      const details = M3U8Parser.parseLevelPlaylist(text, 'http://h/app/stream/x.m3u8', 0, PlaylistLevelType.MAIN, 0, null);
      expect(details.playlistParsingError).toBeNull();
      expect(details.fragments.length).toBe(track.playlist?.segments.length);
      expect(details.live).toBe(false);
    }
  });
});
