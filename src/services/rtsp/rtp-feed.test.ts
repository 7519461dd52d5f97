import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { RecordingSink } from '../../../test/fakes/pull-sink.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { parseRtspDescription } from '../../wire/rtsp/rtsp-description.ts';
import { mediaFormat } from './media-track.ts';
import { RtpFeed } from './rtp-feed.ts';

const DESCRIPTION = [
  'v=0',
  'm=video 0 RTP/AVP 96',
  'a=rtpmap:96 H264/90000',
  'a=fmtp:96 sprop-parameter-sets=Z2QADazZQUGfnwEQAAADABAAAAMB5gIAHoQAB6EpLKAeKFMs,aOvjyyLA',
  'm=audio 0 RTP/AVP 97',
  'a=rtpmap:97 opus/48000/2',
].join('\r\n');
const KEYFRAME = Buffer.from('65888400', 'hex');
/** A slice without the marker bit: more of its frame may follow. */
const UNFINISHED = Buffer.from('419a0102', 'hex');
/** An aggregate whose unit is longer than the packet. */
const UNREADABLE = Buffer.from('78ffff00', 'hex');
const AUDIO_FRAME = Buffer.from('fc010203', 'hex');
const FRAME_MS = 20;
const NTP = 3_900_000_000;

/** One source of the camera: its clock is 0 of the session at `base`, its own wall clock `wall` seconds. */
interface Source {
  readonly track: 'video' | 'audio';
  readonly ssrc: number;
  readonly base: number;
  readonly sequence: number;
  readonly wall?: number;
}

const VIDEO: Source = { track: 'video', ssrc: 1, base: 1000, sequence: 65_530 };
const AUDIO: Source = { track: 'audio', ssrc: 2, base: 4_294_960_000, sequence: 7 };
const OTHER_VIDEO: Source = { track: 'video', ssrc: 11, base: 3_000_000_000, sequence: 30_000 };
const OTHER_AUDIO: Source = { track: 'audio', ssrc: 12, base: 77, sequence: 2 };

/** A camera whose media are made at a time of the session, ms, and arrive at the time of the clock. */
class Camera {
  readonly clock = new ManualClock();
  readonly sink = new RecordingSink();
  readonly feed: RtpFeed;
  readonly #sequences = new Map<number, number>();

  constructor(options: { readonly ignoreSenderReports: boolean; readonly ordered?: boolean }, description = DESCRIPTION) {
    this.feed = new RtpFeed({ sink: this.sink, clock: this.clock, ordered: true, ...options });
    for (const [id, media] of parseRtspDescription(description).media.entries()) this.feed.addTrack(id, media, mediaFormat(media)!);
    this.feed.start();
  }

  send(source: Source, atMs: number, payload = source.track === 'video' ? KEYFRAME : AUDIO_FRAME): void {
    const isVideo = source.track === 'video';
    const sequence = this.#sequences.get(source.ssrc) ?? source.sequence;
    this.#sequences.set(source.ssrc, sequence + 1);
    const header = Buffer.alloc(12);
    header.set([0x80, (payload === UNFINISHED ? 0 : 0x80) | (isVideo ? 96 : 97)]);
    header.writeUInt16BE(sequence & 0xff_ff, 2);
    header.writeUInt32BE(timestampOf(source, atMs), 4);
    header.writeUInt32BE(source.ssrc, 8);
    this.feed.pushRtp(isVideo ? 0 : 1, Buffer.concat([header, payload]));
  }

  /** The sender report of a source for a time of the session. */
  report(source: Source, atMs: number): void {
    const report = Buffer.alloc(28);
    report.set([0x80, 200, 0, 6]);
    report.writeUInt32BE(source.ssrc, 4);
    report.writeUInt32BE((source.wall ?? NTP) + Math.floor(atMs / 1000), 8);
    report.writeUInt32BE(Math.floor(((atMs % 1000) / 1000) * 2 ** 32), 12);
    report.writeUInt32BE(timestampOf(source, atMs), 16);
    this.feed.pushRtcp(source.track === 'video' ? 0 : 1, report);
  }

  /** A packet that is sent and never arrives. */
  lose(source: Source): void {
    this.#sequences.set(source.ssrc, (this.#sequences.get(source.ssrc) ?? source.sequence) + 1);
  }

  goodbye({ track, ssrc }: Source): void {
    this.feed.pushRtcp(track === 'video' ? 0 : 1, Buffer.from([0x81, 203, 0, 1, 0, 0, 0, ssrc]));
  }

  /** Frames of both sources from one time of the session to another, which arrive as they are made. */
  run(sources: readonly Source[], fromMs: number, toMs: number): void {
    for (let at = fromMs; at < toMs; at += FRAME_MS) {
      for (const source of sources) this.send(source, at);
      this.clock.advance(FRAME_MS);
    }
  }

  /** Presentation times of a track, ms. */
  times(track: 'video' | 'audio'): number[] {
    return this.sink.packets.filter(({ trackId }) => trackId === (track === 'video' ? 0 : 1)).map(({ pts }) => pts / 90);
  }

  /** Distances between the times of a track, ms. */
  steps(track: 'video' | 'audio'): number[] {
    const times = this.times(track);
    return times.slice(1).map((time, index) => Math.round(time - times[index]!));
  }
}

function timestampOf({ track, base }: Source, atMs: number): number {
  return (base + atMs * (track === 'video' ? 90 : 48)) % 2 ** 32;
}

/** Delay of the last audio behind the last frame, ms; 0 for a camera that made both at once. */
function skew(camera: Camera): number {
  return camera.times('audio').at(-1)! - camera.times('video').at(-1)!;
}

it('waits a fifth of a second for each missing datagram', () => {
  const camera = new Camera({ ignoreSenderReports: true, ordered: false });
  camera.run([AUDIO], 0, 100);
  camera.lose(AUDIO);
  camera.run([AUDIO], 120, 220);
  camera.lose(AUDIO);
  camera.run([AUDIO], 240, 320);
  camera.feed.checkDeadlines();
  expect(camera.times('audio')).toHaveLength(5);
  camera.clock.advance(FRAME_MS);
  camera.feed.checkDeadlines();
  expect(camera.times('audio')).toHaveLength(10);
  // Since the first packet behind it came, not since the other one was given up.
  camera.clock.advance(4 * FRAME_MS);
  camera.feed.checkDeadlines();
  expect(camera.times('audio')).toHaveLength(10);
  camera.clock.advance(FRAME_MS);
  camera.feed.checkDeadlines();
  expect(camera.steps('audio')).toEqual([20, 20, 20, 20, 40, 20, 20, 20, 20, 40, 20, 20, 20]);
});

it('passes on packets that wait behind an unreadable datagram', () => {
  const camera = new Camera({ ignoreSenderReports: true, ordered: false });
  camera.run([VIDEO], 0, 100);
  camera.lose(VIDEO);
  camera.send(VIDEO, 120, UNREADABLE);
  camera.run([VIDEO], 140, 200);
  camera.clock.advance(10 * FRAME_MS);
  camera.feed.checkDeadlines();
  expect(camera.times('video')).toHaveLength(8);
  expect(camera.feed.counters).toMatchObject({ malformed: 1, firstFault: expect.stringContaining('RTP_NAL') });
});

it('does not retry the start with every packet after a full buffer failed to start it', () => {
  const camera = new Camera({ ignoreSenderReports: true }, DESCRIPTION.replace(/a=fmtp:96.*\r\n/, ''));
  camera.sink.setTracks = () => {
    throw new ProtocolError('AVCC', 'made up');
  };
  camera.run([AUDIO], 0, 600 * FRAME_MS);
  expect(camera.feed.counters.malformed).toBe(1);
});

describe('a camera whose clocks of audio and video run apart', () => {
  /** The audio counts `ms` more than the wall clock from the second report on; there are twenty of each. */
  function drifted(ms: number, ignoreSenderReports: boolean): Camera {
    const camera = new Camera({ ignoreSenderReports });
    camera.report(VIDEO, 0);
    camera.report(AUDIO, 0);
    camera.run([VIDEO, AUDIO], 0, 100);
    const audio = { ...AUDIO, base: AUDIO.base + ms * 48 };
    for (let at = 100; at < 2100; at += 100) {
      camera.report(VIDEO, at);
      camera.report(audio, at);
      camera.run([VIDEO, audio], at, at + 100);
    }
    return camera;
  }

  it.each([
    [80, 10],
    [-80, 10],
    [600, 50],
  ])('moves video to the time of sender reports in small steps (%i ms)', (ms, most) => {
    const camera = drifted(ms, false);
    expect(Math.abs(skew(camera))).toBeLessThan(Math.max(40.1, Math.abs(ms) / 6));
    expect(Math.sign(skew(camera))).toBe(Math.sign(ms));
    for (const step of camera.steps('video')) expect(Math.abs(step - FRAME_MS)).toBeLessThanOrEqual(most);
  });

  it('tolerates a small skew, and any skew when sender reports are ignored', () => {
    const near = drifted(35, false);
    expect([skew(near), new Set(near.steps('video'))]).toEqual([expect.closeTo(35, 1), new Set([FRAME_MS])]);
    expect(skew(drifted(80, true))).toBeCloseTo(80, 1);
  });
});

describe('a camera whose sources restart in mid-session', () => {
  it('continues by arrival time without reports and without a jump of time', () => {
    const camera = new Camera({ ignoreSenderReports: true });
    camera.run([VIDEO, AUDIO], 0, 200);
    camera.run([OTHER_VIDEO, OTHER_AUDIO], 200, 400);
    expect(camera.steps('video')).toEqual(Array(19).fill(FRAME_MS));
    expect(camera.steps('audio')).toEqual(Array(19).fill(FRAME_MS));
    expect(skew(camera)).toBeCloseTo(0, 1);
  });

  it('continues by arrival time when only one source restarts after a pause', () => {
    const camera = new Camera({ ignoreSenderReports: true });
    camera.run([VIDEO, AUDIO], 0, 200);
    camera.run([AUDIO], 200, 500);
    camera.run([OTHER_VIDEO, AUDIO], 500, 600);
    expect(camera.steps('video')).toEqual([...Array(9).fill(FRAME_MS), 320, ...Array(4).fill(FRAME_MS)]);
    expect(skew(camera)).toBeCloseTo(0, 1);
  });

  function synchronised(): Camera {
    const camera = new Camera({ ignoreSenderReports: false });
    camera.report(VIDEO, 0);
    camera.report(AUDIO, 0);
    camera.run([VIDEO, AUDIO], 0, 200);
    expect(skew(camera)).toBeCloseTo(0, 1);
    return camera;
  }

  it.each([
    ['behind its first packets', 'late', [100, 20, -20, 20]],
    ['before its first packet', 'early', [20, 20, 60, 20]],
  ])('puts audio and video in step again with a report %s', (_name, order, steps) => {
    const camera = synchronised();
    if (order === 'early') camera.report(OTHER_VIDEO, 200);
    // The frame takes 80 ms longer to arrive than earlier frames.
    camera.run([AUDIO], 200, 280);
    camera.send(OTHER_VIDEO, 200);
    camera.send(OTHER_VIDEO, 220);
    if (order === 'late') camera.report(OTHER_VIDEO, 220);
    camera.run([OTHER_VIDEO, AUDIO], 280, 320);
    expect(skew(camera)).toBeCloseTo(0, 1);
    expect(camera.steps('audio')).toEqual(Array(15).fill(FRAME_MS));
    expect(camera.steps('video')).toEqual([...Array(9).fill(FRAME_MS), ...steps]);
  });

  it('moves far back in steps that no stream treats as a jump', () => {
    const camera = synchronised();
    // The frame takes 800 ms longer to arrive than earlier frames.
    camera.run([AUDIO], 200, 1000);
    for (const at of [200, 220, 240]) {
      camera.send(OTHER_VIDEO, at);
      camera.report(OTHER_VIDEO, at);
    }
    camera.run([OTHER_VIDEO, AUDIO], 1000, 1040);
    expect(camera.steps('video').slice(9)).toEqual([820, -380, -380, 760, FRAME_MS]);
    expect(skew(camera)).toBeCloseTo(0, 1);
  });

  it('is synchronised by its own sender report, and ignores reports of unknown sources', () => {
    const camera = synchronised();
    camera.report(OTHER_VIDEO, 200);
    camera.report(VIDEO, 180);
    camera.report({ ...AUDIO, ssrc: 99, wall: 5 }, 190);
    camera.run([AUDIO], 200, 280);
    camera.send(OTHER_VIDEO, 200);
    camera.run([OTHER_VIDEO, AUDIO], 280, 320);
    expect(skew(camera)).toBeCloseTo(0, 1);
  });

  it('stays at its arrival time when its report uses another wall clock than the other track', () => {
    const camera = synchronised();
    const video = { ...OTHER_VIDEO, wall: NTP + 60 };
    camera.report(AUDIO, 180);
    camera.send(video, 200);
    camera.report(video, 200);
    camera.clock.advance(FRAME_MS);
    camera.run([video, AUDIO], 220, 300);
    expect(camera.steps('video')).toEqual(Array(14).fill(FRAME_MS));
  });

  it('synchronises both tracks when the wall clock of the camera has changed as well', () => {
    const camera = synchronised();
    const [video, audio] = [OTHER_VIDEO, OTHER_AUDIO].map((source) => ({ ...source, wall: 1000 }));
    camera.send(audio!, 200);
    camera.clock.advance(50);
    camera.send(video!, 200);
    expect(Math.abs(skew(camera))).toBeGreaterThan(40);
    camera.report(audio!, 200);
    camera.report(video!, 200);
    camera.run([video!, audio!], 220, 300);
    expect(skew(camera)).toBeCloseTo(0, 1);
    expect(camera.steps('audio')).toEqual(Array(14).fill(FRAME_MS));
    expect(camera.steps('video')).toEqual([...Array(9).fill(FRAME_MS), 70, -30, ...Array(3).fill(FRAME_MS)]);
  });

  it('waits for the reports of the new sources when the stream has not begun', () => {
    const camera = new Camera({ ignoreSenderReports: false });
    camera.report(VIDEO, 0);
    camera.run([VIDEO, AUDIO], 0, 40);
    camera.run([OTHER_VIDEO, AUDIO], 40, 80);
    camera.report(AUDIO, 60);
    expect(camera.sink.packets).toEqual([]);
    camera.report(OTHER_VIDEO, 60);
    // Packets of the first source have times of a former clock.
    expect(camera.times('video')).toHaveLength(2);
    expect(camera.times('audio')).toHaveLength(4);
    expect(skew(camera)).toBeCloseTo(0, 1);
  });

  it('counts unreadable parameters, also when the wait for the other sources ends', () => {
    const sink = new RecordingSink();
    sink.setTracks = () => {
      throw new ProtocolError('AVCC', 'made up');
    };
    const clock = new ManualClock();
    const feed = new RtpFeed({ sink, clock, ordered: true, ignoreSenderReports: false });
    const { media } = parseRtspDescription(DESCRIPTION.replace(/a=fmtp:96.*\r\n/, ''));
    for (const [id, one] of media.entries()) feed.addTrack(id, one, mediaFormat(one)!);
    for (let second = 0; second < 10; second += 1) {
      feed.checkDeadlines();
      clock.advance(1000);
    }
    expect(feed.counters.firstFault).toBe('AVCC: made up');
  });

  it('does not reuse the start that the server announced for the first source', () => {
    const camera = new Camera({ ignoreSenderReports: false });
    camera.feed.announceStart(0, VIDEO.base);
    camera.feed.announceStart(1, AUDIO.base);
    camera.run([VIDEO, AUDIO], 0, 3000);
    // It counts from the same number again.
    const video = { ...OTHER_VIDEO, base: VIDEO.base + 2 ** 32 - 3000 * 90 };
    camera.run([video, AUDIO], 3000, 5100);
    camera.feed.checkDeadlines();
    expect(camera.times('video')).toHaveLength(105);
    expect(skew(camera)).toBeCloseTo(0, 1);
  });

  it('waits for changing sources no longer than for one source', () => {
    const camera = new Camera({ ignoreSenderReports: false });
    for (let at = 0; at <= 5000; at += 500) {
      camera.send({ ...VIDEO, ssrc: 100 + at }, at);
      camera.feed.checkDeadlines();
      camera.clock.advance(500);
    }
    expect(camera.times('video')).not.toEqual([]);
  });

  it('leaves out an unfinished frame of the old source', () => {
    const camera = new Camera({ ignoreSenderReports: true });
    camera.run([VIDEO], 0, 100);
    camera.send(VIDEO, 100, UNFINISHED);
    camera.clock.advance(FRAME_MS);
    camera.run([OTHER_VIDEO], 120, 200);
    expect(camera.steps('video')).toEqual([...Array(4).fill(FRAME_MS), 40, ...Array(3).fill(FRAME_MS)]);
  });

  it('ends only after all of its sources have left', () => {
    const camera = new Camera({ ignoreSenderReports: true });
    camera.run([VIDEO, AUDIO], 0, 40);
    camera.goodbye(VIDEO);
    camera.run([OTHER_VIDEO], 40, 80);
    camera.goodbye(AUDIO);
    expect(camera.feed.left).toBe(false);
    camera.goodbye(OTHER_VIDEO);
    expect(camera.feed.left).toBe(true);
  });
});
