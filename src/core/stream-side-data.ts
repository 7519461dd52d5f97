/** Events and cues of a stream, passed on to another stream of this server that is made of it. */
import { readCuePayload } from '../containers/webvtt/cue-payload.ts';
import type { Packet } from '../media/packet.ts';
import { toMilliseconds } from '../media/timebase.ts';
import { EventFormat, type TimedEvent } from '../media/timed-event.ts';

/** An event or a subtitle cue; times in ms of the source stream. */
export type StreamSideData =
  | { readonly type: 'event'; readonly at: number; readonly event: TimedEvent; readonly data: Uint8Array }
  | {
      readonly type: 'cue';
      readonly at: number;
      readonly language: string;
      readonly duration: number;
      readonly settings: string;
      readonly text: string;
    };

/** Converts `packet`, which has an `event`, for another stream; null for the end of live playlists, which concerns only its own stream. */
export function sideDataOf({ track, pts, duration, data, event }: Packet): StreamSideData | null {
  const at = toMilliseconds(pts, track.timebase);
  if (event === undefined || event.format === EventFormat.CONCLUSION) return null;
  if (event.format !== EventFormat.SUBTITLE) return { type: 'event', at, event, data };
  return { type: 'cue', at, language: track.language, duration: toMilliseconds(duration, track.timebase), ...readCuePayload(data) };
}
