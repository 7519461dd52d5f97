/** Records every frame that a page of Chromium shows: its time and its colour. */
import type { Page } from 'playwright-core';

/** A shown frame; times in seconds. */
export interface WatchedFrame {
  /** Time in the media. */
  readonly at: number;
  /** Time on the screen. */
  readonly seen: number;
  /** Number of frames shown at once. */
  readonly count: number;
  /** 0 to 255. */
  readonly rgb: readonly [number, number, number];
}

const WATCH = `(() => {
  const videos = [...document.querySelectorAll('video')];
  const video = videos.filter(({ videoWidth }) => videoWidth > 0).at(-1) ?? videos.at(-1);
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 4;
  const context = canvas.getContext('2d', { willReadFrequently: true });
  window.watched = [];
  const watch = (now, { mediaTime, rtpTimestamp, presentedFrames }) => {
    context.drawImage(video, 0, 0, 4, 4);
    const at = rtpTimestamp === undefined ? mediaTime : rtpTimestamp / 90000;
    window.watched.push({ at, seen: now / 1000, count: presentedFrames, rgb: [...context.getImageData(1, 1, 1, 1).data].slice(0, 3) });
    video.requestVideoFrameCallback(watch);
  };
  video.requestVideoFrameCallback(watch);
})()`;

/** Starts recording the video of the page. */
export async function watchFrames(page: Page): Promise<void> {
  await page.evaluate(WATCH);
}

/** The frames shown since `watchFrames`. */
export async function framesOf(page: Page): Promise<readonly WatchedFrame[]> {
  return await page.evaluate('window.watched');
}

/** Longest duration of a frame, seconds; frames that the browser did not report separately share theirs. */
export function longestFrame(frames: readonly WatchedFrame[]): number {
  const steps = frames.slice(1).map(({ at, count }, index) => {
    const before = frames[index];
    return before === undefined ? 0 : Math.abs(at - before.at) / Math.max(1, count - before.count);
  });
  return Math.max(...steps);
}

/** The longest time between two frames on the screen, seconds. */
export function longestWait(frames: readonly WatchedFrame[]): number {
  return Math.max(...frames.slice(1).map(({ seen }, index) => seen - (frames[index]?.seen ?? seen)));
}

/** Longest gap between two buffered ranges of a page with hls.js, seconds. */
export async function longestHole(page: Page): Promise<number> {
  const ranges: [number, number][] = await page.evaluate(`(() => {
    const { buffered } = document.querySelector('video');
    return Array.from({ length: buffered.length }, (_, index) => [buffered.start(index), buffered.end(index)]);
  })()`);
  return Math.max(0, ...ranges.slice(1).map(([from], index) => from - (ranges[index]?.[1] ?? from)));
}

/** Runs of the strongest colour. */
export function coloursOf(frames: readonly WatchedFrame[]): string[] {
  const names = frames.map(({ rgb }) => ['red', 'green', 'blue'][rgb.indexOf(Math.max(...rgb))] ?? '');
  return names.filter((name, index) => name !== names[index - 1]);
}
