/**
 * Brings the clocks of audio and video onto one time. Sender reports relate them (RFC 3550 §6.4.1), but browsers send the first reports
 * seconds after the media: until then the time of arrival counts, and the difference to the reports is corrected in invisible steps. Audio
 * is the master, because its timestamps must stay without gaps.
 */
import type { SenderReport } from '../../../wire/rtp/rtcp-packet.ts';
import { RtpClock } from '../../../wire/rtp/rtp-clock.ts';

/** Share of the error that one frame corrects. */
const STEP_SHARE = 0.1;
/** The maximum correction, relative to the distance from the previous frame: so time never goes back. */
const MAX_STEP = 1 / 8;
/** Errors of more than this, seconds, are corrected in larger steps. */
const FAR = 0.5;
const MAX_STEP_FROM_FAR = 1 / 3;
/** Reports that put the tracks further apart, seconds, are of unrelated clocks and say nothing. */
const UNRELATED = 10;

/** One track: made by `LipSync.add`. */
export interface SyncedTrack {
  readonly isAudio: boolean;
  readonly rate: number;
  readonly clock: RtpClock;
  /** Seconds of the sender's clock at the last packet; null before the first. */
  last: number | null;
  /** Seconds of the session at tick 0; null before the first packet. */
  base: number | null;
  /** The base that sender reports imply; null without one. */
  wanted: number | null;
  /** Wall clock of the sender at a tick. */
  report: { readonly ntp: number; readonly ticks: number } | null;
}

/** One for each publisher, all times in seconds. */
export class LipSync {
  readonly #tracks: SyncedTrack[] = [];

  add(options: { readonly isAudio: boolean; readonly rate: number }): SyncedTrack {
    const track: SyncedTrack = { ...options, clock: new RtpClock(options.rate), last: null, base: null, wanted: null, report: null };
    this.#tracks.push(track);
    return track;
  }

  /** Seconds of the session for a timestamp that came `now`, seconds of the session. */
  place(track: SyncedTrack, timestamp: number, now: number): number {
    const at = track.clock.unwrap(timestamp) / track.rate;
    track.base ??= track.wanted ?? now - at;
    if (track.wanted !== null && track.last !== null) {
      const error = track.wanted - track.base;
      const most = Math.max(0, at - track.last) * (Math.abs(error) > FAR ? MAX_STEP_FROM_FAR : MAX_STEP);
      track.base += Math.max(-most, Math.min(most, error * STEP_SHARE));
    }
    track.last = at;
    return track.base + at;
  }

  /** The source of a track restarts, with new timestamps. */
  restart(track: SyncedTrack): void {
    const fresh = this.#tracks.indexOf(track);
    if (fresh < 0) return;
    track.last = null;
    track.base = null;
    track.wanted = null;
    track.report = null;
  }

  report(track: SyncedTrack, { ntp, rtpTimestamp }: SenderReport): void {
    // Before the first packet the wrap of the timestamp is unknown.
    if (track.base === null) return;
    track.report = { ntp, ticks: track.clock.unwrap(rtpTimestamp) };
    const master = this.#master();
    if (master?.report == null || master.base === null) return;
    // Session time of the sender's wall clock 0.
    const origin = master.base + master.report.ticks / master.rate - master.report.ntp;
    for (const other of this.#tracks) {
      if (other === master || other.report === null || other.base === null) continue;
      const wanted = other.report.ntp + origin - other.report.ticks / other.rate;
      other.wanted = Math.abs(wanted - other.base) > UNRELATED ? null : wanted;
    }
  }

  #master(): SyncedTrack | undefined {
    const running = this.#tracks.filter(({ base }) => base !== null);
    return running.find(({ isAudio }) => isAudio) ?? running[0];
  }
}
