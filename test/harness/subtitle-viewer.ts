/** Reports which subtitles an HLS page shows, and when. */

import { parseMediaPlaylist } from '../support/playlist/media-playlist.ts';
import type { HlsPlayer } from './browser.ts';
import { clockDelay } from './burnt-clock.ts';
import { fetchText, openSession } from './viewer.ts';

/** Half a frame at 30 frames per second. */
const HALF_FRAME_S = 1 / 60;

/** A cue as the page got it. */
export interface SeenCue {
  /** Shown text, without tags. */
  readonly text: string;
  /** Label of the text track. */
  readonly label: string;
  readonly language: string;
  readonly kind: string;
  /** Time of the video element, seconds. */
  readonly start: number;
  readonly end: number;
  /** Time of the video when the page got the cue. */
  readonly knownAt: number;
  /** Time of the video when the cue became active. */
  readonly enteredAt: number;
  /** Mean brightness of the frame at that time. */
  readonly brightness: number;
}

/** Makes the page show the subtitles of `label`, or captions found by hls.js in the video, and record each cue that becomes active. */
export async function watchCues(player: HlsPlayer, label: string): Promise<void> {
  await player.page.evaluate(`
    window.seenCues = [];
    window.shownFrames = [];
    const known = new Map();
    const entered = new Set();
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
        for (const cue of track.cues ?? []) if (!known.has(cue)) known.set(cue, video.currentTime);
        for (const cue of track.activeCues ?? []) {
          if (entered.has(cue)) continue;
          entered.add(cue);
          seenCues.push({ text: cue.getCueAsHTML().textContent, label: track.label, language: track.language, kind: track.kind, start: cue.startTime, end: cue.endTime, knownAt: known.get(cue), enteredAt: video.currentTime, brightness: player.picture()?.mean ?? -1 });
        }
      }
      requestAnimationFrame(look);
    }
    look();
    function onFrame() {
      // A frame with its own time: what is on show may be the next one by now.
      const picture = new VideoFrame(video);
      const clock = player.clock(picture);
      if (clock !== null) shownFrames.push({ ...clock, time: picture.timestamp / 1e6 });
      picture.close();
      video.requestVideoFrameCallback(onFrame);
    }
    video.requestVideoFrameCallback(onFrame);`);
}

/** Cues that have become active since `watchCues`, one entry for each time that a cue was put onto its track. */
export async function seenCues(player: HlsPlayer): Promise<SeenCue[]> {
  return await player.page.evaluate('seenCues');
}

/** Wall clock, ms, burnt into the last frame shown before `time` (seconds of the video element); undefined without such a frame. */
export async function burntBefore(player: HlsPlayer, time: number): Promise<number | undefined> {
  const frames: { ticks: number; seenAt: number; time: number }[] = await player.page.evaluate('shownFrames');
  const last = frames.filter((frame) => frame.time < time - HALF_FRAME_S).at(-1);
  return last === undefined ? undefined : last.seenAt - clockDelay(last.ticks, last.seenAt);
}

/**
 * Date, ms, that playlists give to `time`, seconds of the video element: from the segment that hls.js has read, not its earlier estimate.
 */
export async function dateAt(player: HlsPlayer, time: number): Promise<number> {
  return await player.page.evaluate(`(() => {
    const { fragments } = hls.latestLevelDetails;
    const read = fragments.map(({ programDateTime, elementaryStreams: { video, audiovideo } }) => ({ programDateTime, start: (video ?? audiovideo)?.startPTS }));
    const { programDateTime, start } = read.findLast((one) => one.start <= ${time});
    return programDateTime + (${time} - start) * 1000;
  })()`);
}

/** Date, ms, of the end of a stream's newest part, once another part is available. */
export async function endOfNextPart(multivariantUrl: string): Promise<number> {
  const { video } = await openSession(multivariantUrl);
  const last = parseMediaPlaylist(await fetchText(video)).segments.at(-1);
  if (last === undefined) throw new Error(`no segment in ${video}`);
  const [msn, part] = last.uri === null ? [last.msn, last.parts.length] : [last.msn + 1, 0];
  const next = new URL(video);
  next.searchParams.set('_HLS_msn', `${msn}`);
  next.searchParams.set('_HLS_part', `${part}`);
  const { segments } = parseMediaPlaylist(await fetchText(next.href));
  let end = Number.NaN;
  for (const { programDateTime, duration, parts } of segments)
    end = (programDateTime ?? end) + 1000 * (duration ?? parts.reduce((sum, one) => sum + one.duration, 0));
  return end;
}
