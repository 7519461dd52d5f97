/** A browser page that plays a stream over WHEP. */
import { until } from './poll.ts';
import type { WebrtcBrowser, WebrtcPage } from './webrtc-browser.ts';

/** A uniform frame has a variance of nearly 0. */
const MIN_VARIANCE = 100;

/** Media that the page must have decoded to count as watching. */
export interface WatchedMedia {
  readonly frames: number;
  readonly size: { readonly width: number; readonly height: number };
}

/** Opens a page that plays `url` until it has decoded the frames, and the last of them has its full size. The caller closes it. */
export async function watchWhep(browser: WebrtcBrowser, url: string, { frames, size }: WatchedMedia): Promise<WebrtcPage> {
  const page = await browser.open();
  await until(`an offer from ${url}`, async () => await page.whep(url).catch(() => null), { deadlineMs: 10_000 });
  await page.decoded(frames);
  let last: Awaited<ReturnType<WebrtcPage['picture']>> = null;
  try {
    // A browser sends smaller frames until it knows the capacity of the path, and begins with an empty frame.
    await until('a frame of full size', async () => {
      last = await page.picture();
      return last !== null && last.width === size.width && last.height === size.height && last.variance > MIN_VARIANCE;
    });
  } catch (error) {
    throw new Error(`the frame stayed ${JSON.stringify(last)}`, { cause: error });
  }
  return page;
}
