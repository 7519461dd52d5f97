/** A recording task's hold on its stream. */
import type { PublishableStream } from '../../core/publishing.ts';
import type { Track } from '../../media/track.ts';
import type { RecordFile } from './record-file.ts';
import type { RecordPaths, RecordPlace } from './record-place.ts';
import type { SplitRule } from './split-schedule.ts';

/** A task's state while its stream is there. */
export interface Attachment {
  readonly stream: PublishableStream;
  readonly place: RecordPlace;
  readonly paths: RecordPaths;
  readonly transactionId: string;
  readonly split: SplitRule;
  /** By track id, as the last packet had it. */
  readonly tracks: Map<number, Track>;
  mainTrackId: number;
  file: RecordFile | null;
  /** The file before, until all tracks have passed the cut. */
  ending: { readonly file: RecordFile; readonly endMs: number; readonly finishTime: number; readonly waiting: Set<number> } | null;
  /** Parameters or the choice of tracks have changed: the next keyframe begins a new file. */
  changed: boolean;
  /** Presentation time of the very first packet, 90 kHz. */
  origin: number | null;
}

/** A task's state while its stream is there and the disk refuses. */
export interface Waiting {
  readonly stream: PublishableStream;
  readonly place: RecordPlace;
  /** The folder of the files. */
  readonly folder: string;
  /** Id of the main track; -1: any. */
  readonly trackId: number;
}
