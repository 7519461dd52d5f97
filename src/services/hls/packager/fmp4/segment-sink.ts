/** The cuts that a `Segmenter` reports. */
import type { TimedSample } from './sample-timeline.ts';

/** A finished part; its samples still hold their packets' bytes. */
export interface CutPart {
  readonly msn: number;
  readonly part: number;
  /** Seconds, as listed. */
  readonly duration: number;
  readonly independent: boolean;
  readonly likelyLast: boolean;
  /** The segment ends with it; known if the next frame is present already. */
  readonly last: boolean;
  readonly samples: readonly TimedSample[];
  /** End of the media of the last sample, ticks. */
  readonly end: number;
  /** Before a change of configuration: when the first sample behind it is shown, ticks. No sample of this part is shown for longer. */
  readonly shownUntil: number | null;
}

/** Receives cuts in the order of the media; a segment is open from `segmentOpened` to `segmentClosed`, gaps excepted. */
export interface SegmentSink {
  /** `time`: presentation time of the first frame, ms; `independent`: it is a keyframe. */
  segmentOpened(segment: { msn: number; time: number; discontinuity: boolean; independent: boolean }): void;
  partTargetChosen(seconds: number): void;
  partClosed(part: CutPart): void;
  segmentClosed(duration: number): void;
  /** Segment `msn` has no media: the source paused. `time` in ms of presentation, `duration` in seconds. */
  gapPassed(gap: { msn: number; time: number; duration: number; discontinuity: boolean }): void;
}
