/** Labs of a test file: one that tests share if they leave its processes alone, and separate ones for the others. */
import { afterAll, afterEach, expect } from 'vitest';
import type { EncodeRequest } from '../../src/core/transcoding.ts';
import type { AudioTrack, VideoTrack } from '../../src/media/track.ts';
import { until } from '../harness/poll.ts';
import { type EncodedMedia, encodeMedia } from '../support/encoded-media.ts';
import { audioConfig, imageConfig, TranscodeLab, type TranscodeRun, videoConfig } from './transcode-run.ts';

/** Duration of the media. */
export const SECONDS = 4;
const VIDEO = 0;
/** Id of the audio. */
export const AUDIO = 1;

/** An encode of the video. */
export const video = (id: number, overrides: Parameters<typeof videoConfig>[0] = {}): EncodeRequest => ({
  id,
  sourceId: VIDEO,
  type: 'video',
  encode: videoConfig(overrides),
});
/** An encode of the audio. */
export const audio = (id: number, overrides: Parameters<typeof audioConfig>[0] = {}): EncodeRequest => ({
  id,
  sourceId: AUDIO,
  type: 'audio',
  encode: audioConfig(overrides),
});
/** Images of the video. */
export const image = (id: number, overrides: Parameters<typeof imageConfig>[0] = {}): EncodeRequest => ({
  id,
  sourceId: VIDEO,
  type: 'image',
  encode: imageConfig(overrides),
});

/** Whether the process exists. */
export function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** The tools of a test file. */
export interface TranscodeLabs {
  readonly media: EncodedMedia;
  readonly tracks: () => (VideoTrack | AudioTrack)[];
  /** Opens a lab with its own processes. */
  readonly lab: (options?: ConstructorParameters<typeof TranscodeLab>[0]) => TranscodeLab;
  /** Opens a job in the shared lab. */
  readonly open: (...args: Parameters<TranscodeLab['open']>) => TranscodeRun;
}

/** Call it once per test file: closes labs and jobs after each test, and waits for the end of their processes. */
export function setUpLabs(): TranscodeLabs {
  const media = encodeMedia({ video: 'libx264', audio: 'aac', seconds: SECONDS, extra: ['-bf', '0', '-g', '30', '-preset', 'ultrafast'] });
  const labs: TranscodeLab[] = [];
  const runs: TranscodeRun[] = [];
  const shared = new TranscodeLab();
  afterEach(async () => {
    for (const run of runs.splice(0)) run.session.close();
    for (const made of labs.splice(0)) {
      const pids = made.supervisor.pids;
      await made.close();
      await made.close();
      for (const pid of pids) await until('the process is gone', () => !alive(pid));
    }
  });
  afterAll(async () => {
    expect(labs).toEqual([]);
    await shared.close();
  });
  return {
    media,
    tracks: () => [media.video!, media.audio!],
    lab: (options) => {
      const made = new TranscodeLab(options);
      labs.push(made);
      return made;
    },
    open: (...args) => {
      const run = shared.open(...args);
      runs.push(run);
      return run;
    },
  };
}
