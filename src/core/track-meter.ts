import type { Packet } from '../media/packet.ts';
import { toSeconds } from '../media/timebase.ts';
import type { TrackFigures } from './publishing.ts';

const INTERVAL_S = 1;
/** A measured rate this close to a usual rate counts as that rate. */
const SNAP = 0.0005;

/** Measures bitrate, frame rate and GOP of one track from its media timestamps; nothing is allocated per packet. */
export class TrackMeter implements TrackFigures {
  bitrateLatest = 0;
  framerateLatest = 0;
  keyFrameIntervalLatest = 0;
  deltaFramesSinceLastKeyFrame = 0;
  hasBframes = false;
  maxWidth = 0;
  maxHeight = 0;
  /** Presentation time of the last keyframe, seconds; NaN before the first keyframe. */
  keyframeAt = Number.NaN;
  /** Time between the last two keyframes, seconds; NaN before the second. */
  keyframeSeconds = Number.NaN;
  #bytes = 0;
  #frames = 0;
  #seconds = 0;
  #windowBytes = 0;
  #windowFrames = 0;
  #windowStart = Number.NaN;
  /** Since the start, including the present window. */
  #framesSeen = 0;
  #keyframes = 0;
  #framesAtFirstKeyframe = 0;
  #framesAtLastKeyframe = 0;

  count(packet: Packet): void {
    const at = toSeconds(packet.dts, packet.track.timebase);
    if (Number.isNaN(this.#windowStart)) this.#windowStart = at;
    const elapsed = at - this.#windowStart;
    if (elapsed >= INTERVAL_S) {
      this.bitrateLatest = Math.round((this.#windowBytes * 8) / elapsed);
      this.framerateLatest = this.#windowFrames / elapsed;
      this.#bytes += this.#windowBytes;
      this.#frames += this.#windowFrames;
      this.#seconds += elapsed;
      this.#windowBytes = 0;
      this.#windowFrames = 0;
      this.#windowStart = at;
    } else if (elapsed < 0) {
      this.#windowBytes = 0;
      this.#windowFrames = 0;
      this.#windowStart = at;
    }
    this.#windowBytes += packet.data.length;
    this.#windowFrames += 1;
    if (packet.track.type === 'video') this.#countFrame(packet);
  }

  /** Bits per second since the start. */
  get bitrateAvg(): number {
    return this.#seconds > 0 ? Math.round((this.#bytes * 8) / this.#seconds) : 0;
  }

  /** Frames per second since the start; a value close to a usual rate becomes that rate, because timestamps of 1 ms are imprecise. */
  get framerateAvg(): number {
    return this.#seconds > 0 ? nearestFramerate(this.#frames / this.#seconds, SNAP) : 0;
  }

  /** Frames between keyframes since the start. */
  get keyFrameIntervalAvg(): number {
    return this.#keyframes > 1 ? (this.#framesAtLastKeyframe - this.#framesAtFirstKeyframe) / (this.#keyframes - 1) : 0;
  }

  #countFrame(packet: Packet): void {
    if (packet.keyframe) {
      this.#keyframes += 1;
      const at = toSeconds(packet.pts, packet.track.timebase);
      this.keyframeSeconds = at - this.keyframeAt;
      this.keyframeAt = at;
      if (this.#keyframes === 1) this.#framesAtFirstKeyframe = this.#framesSeen;
      else this.keyFrameIntervalLatest = this.#framesSeen - this.#framesAtLastKeyframe;
      this.#framesAtLastKeyframe = this.#framesSeen;
      this.deltaFramesSinceLastKeyFrame = 0;
    } else {
      this.deltaFramesSinceLastKeyFrame += 1;
    }
    this.#framesSeen += 1;
    if (packet.pts !== packet.dts) this.hasBframes = true;
    const track = packet.track;
    if (track.type === 'video') {
      if (track.width > this.maxWidth) this.maxWidth = track.width;
      if (track.height > this.maxHeight) this.maxHeight = track.height;
    }
  }
}

/** The meters of a stream's tracks, made when first asked for. */
export class TrackMeters {
  readonly #byTrack = new Map<number, TrackMeter>();

  of(trackId: number): TrackMeter {
    let meter = this.#byTrack.get(trackId);
    if (meter === undefined) {
      meter = new TrackMeter();
      this.#byTrack.set(trackId, meter);
    }
    return meter;
  }
}

const COMMON_RATES = [15, 20, 24000 / 1001, 24, 25, 30000 / 1001, 30, 48, 50, 60000 / 1001, 60, 100, 120];

/** The usual frame rate nearest to `rate` if it is within `tolerance` of it, else `rate` itself. */
export function nearestFramerate(rate: number, tolerance: number): number {
  const nearest = COMMON_RATES.reduce((best, common) => (Math.abs(rate - common) < Math.abs(rate - best) ? common : best));
  return Math.abs(rate / nearest - 1) < tolerance ? nearest : rate;
}
