/** Layouts of an event's bytes, in the words of the API. */
export const EventFormat = {
  /** A whole ID3v2.4 tag. */
  ID3: 'id3v2',
  /** A cue of nine bytes (`containers/markers/cue.ts`). */
  CUE: 'cue',
  /** A splice_info_section; the packet's `pts` is the time of the splice, regardless of the time in the section. */
  SCTE35: 'scte35',
  /** AMF0 values: the name of a script message and its arguments. */
  AMF: 'amf',
  /** The payload of an SEI message of type user_data_unregistered, UUID included. */
  SEI: 'sei',
  /**
   * A cue of a subtitle track: the line of its settings, a line break, its text, all in the form of WebVTT. `pts` and `duration` are its
   * time.
   */
  SUBTITLE: 'webvtt',
  /** No bytes: the live playlists end here. */
  CONCLUSION: 'conclusion',
} as const;
/** Any value of `EventFormat`. */
export type EventFormat = (typeof EventFormat)[keyof typeof EventFormat];

/** The tracks that carry an event, in formats that put it inside of tracks. */
export type EventTarget = 'all' | 'video' | 'audio';

/** The event of a data track's packet. */
export interface TimedEvent {
  readonly format: EventFormat;
  readonly target: EventTarget;
  /** Only for SEI: the event waits for a keyframe. */
  readonly keyframeOnly?: boolean;
}

/** Whether segments are cut at the time of the event. */
export function isMarker({ format }: TimedEvent): boolean {
  return format === EventFormat.CUE || format === EventFormat.SCTE35;
}
