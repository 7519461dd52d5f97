/** The thread of `PartTimes`: requests each part in advance, and reports all of them when it is stopped. */
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { parseMediaPlaylist } from '../support/playlist/media-playlist.ts';

const RETRY_MS = 250;

/** A part; seconds since the epoch by the date-times of the playlist, `at` in ms by the clock. */
export interface TimedPart {
  readonly msn: number;
  readonly part: number;
  readonly discontinuity: boolean;
  readonly start: number;
  readonly end: number;
  readonly duration: number;
  readonly at: number;
}

const parts: TimedPart[] = [];
let stopped = false;
parentPort?.once('message', () => {
  stopped = true;
});

async function follow(url: string): Promise<void> {
  let wanted: { msn: number; part: number } | null = null;
  while (!stopped) {
    const asked: URL = new URL(url);
    if (wanted !== null) {
      asked.searchParams.set('_HLS_msn', `${wanted.msn}`);
      asked.searchParams.set('_HLS_part', `${wanted.part}`);
    }
    const response = await fetch(asked);
    const text = await response.text();
    const at = Date.now();
    // A part that is so late that the server gives up counts as late.
    if (!response.ok) {
      await delay(RETRY_MS);
      continue;
    }
    for (const segment of parseMediaPlaylist(text).segments) {
      let start = (segment.programDateTime ?? 0) / 1000;
      for (const [part, { duration }] of segment.parts.entries()) {
        const { msn, discontinuity } = segment;
        const isNew = wanted === null || msn > wanted.msn || (msn === wanted.msn && part >= wanted.part);
        if (isNew) {
          // The arrival of parts before the first response is unknown.
          if (wanted !== null) parts.push({ msn, part, discontinuity, start, end: start + duration, duration, at });
        }
        start += duration;
      }
    }
    const last: { msn: number; parts: readonly unknown[]; duration: number | null } | undefined = parseMediaPlaylist(text).segments.at(-1);
    if (last !== undefined) wanted = last.duration === null ? { msn: last.msn, part: last.parts.length } : { msn: last.msn + 1, part: 0 };
  }
}

// Observations from before a failure are reported, too.
void follow(String(workerData))
  .catch(() => undefined)
  .then(() => parentPort?.postMessage(parts));
