/** Reads what a page that plays HLS shows of subtitles, and when. */

import type { HlsPlayer } from './browser.ts';
import { clockDelay } from './burnt-clock.ts';

/** A cue as the page met it. */
export interface SeenCue {
  /** As it is shown, without tags. */
  readonly text: string;
  /** Of the text track. */
  readonly label: string;
  readonly language: string;
  readonly kind: string;
  /** Seconds of the video element. */
  readonly start: number;
  readonly end: number;
  /** Where the video was when the cue became active. */
  readonly enteredAt: number;
  /** Mean brightness of the picture then. */
  readonly brightness: number;
}

/** Makes the page show the subtitles of `label`, or captions that hls.js finds in the video, and remember each cue that becomes active. */
export async function watchCues(player: HlsPlayer, label: string): Promise<void> {
  await player.page.evaluate(`
    window.seenCues = [];
    window.frame = null;
    const known = new Set();
    function choose() {
      const index = hls.subtitleTracks.findIndex(({ name }) => name === ${JSON.stringify(label)});
      if (index >= 0 && hls.subtitleTrack !== index) hls.subtitleTrack = index;
      for (const track of video.textTracks) {
        if (track.label === ${JSON.stringify(label)} && track.mode === 'disabled') track.mode = 'showing';
      }
    }
    function look() {
      choose();
      for (const track of video.textTracks) {
        if (track.label !== ${JSON.stringify(label)}) continue;
        for (const cue of track.activeCues ?? []) {
          if (known.has(cue)) continue;
          known.add(cue);
          seenCues.push({ text: cue.getCueAsHTML().textContent, label: track.label, language: track.language, kind: track.kind, start: cue.startTime, end: cue.endTime, enteredAt: video.currentTime, brightness: player.picture()?.mean ?? -1 });
        }
      }
      requestAnimationFrame(look);
    }
    look();
    function onFrame(_now, { mediaTime }) {
      const clock = player.clock();
      if (clock !== null) window.frame = { ...clock, mediaTime };
      video.requestVideoFrameCallback(onFrame);
    }
    video.requestVideoFrameCallback(onFrame);`);
}

/** Cues that have become active since `watchCues`, each once for each time that it was put onto its track. */
export async function seenCues(player: HlsPlayer): Promise<SeenCue[]> {
  return await player.page.evaluate('seenCues');
}

/** Wall clock, ms, that was burnt into the frame shown at `time` (seconds of the video element), told from the frame that is on show. */
export async function wallClockAt(player: HlsPlayer, time: number): Promise<number> {
  const frame: { ticks: number; seenAt: number; mediaTime: number } = await player.page.evaluate('frame');
  return frame.seenAt - clockDelay(frame.ticks, frame.seenAt) + (time - frame.mediaTime) * 1000;
}
