/** Plays LL-HLS with hls.js, or with the browser's own player where Media Source is missing. */
import type Hls from 'hls.js';
import type { ErrorData } from 'hls.js';
import { type PlayerListener, type Playing, videoIn } from './playing.ts';

/** Recoveries of a player before it counts as failed. */
const MAX_RECOVERIES = 3;
const RETRY_MS = 2000;

/** Loads hls.js, once. */
export function loadHls(): Promise<typeof import('hls.js')> {
  return import('hls.js');
}

/** `url` is the URL of a multivariant playlist. The module of hls.js is loaded at the first call. */
export async function playHls(place: HTMLElement, url: string, listener: PlayerListener, { isLive = true } = {}): Promise<Playing> {
  const { default: Player } = await loadHls();
  const video = videoIn(place);
  video.addEventListener('playing', () => listener.playing());
  if (!Player.isSupported()) return playNatively(video, url, listener);
  // A worker would need code from a text, which the content security policy of the page forbids.
  const hls = new Player({ lowLatencyMode: isLive, enableWorker: false, maxLiveSyncPlaybackRate: 1.5 });
  let recoveries = 0;
  let timer = 0;
  hls.on(Player.Events.ERROR, (_event, data) => {
    if (!data.fatal) return;
    listener.failed(wordsOf(data));
    if (data.type === Player.ErrorTypes.MEDIA_ERROR && recoveries < MAX_RECOVERIES) {
      recoveries += 1;
      hls.recoverMediaError();
    } else if (data.type === Player.ErrorTypes.NETWORK_ERROR) {
      clearTimeout(timer);
      timer = setTimeout(() => hls.loadSource(url), RETRY_MS);
    }
  });
  hls.loadSource(url);
  hls.attachMedia(video);
  return {
    delay: async () => delayOf(hls, video),
    close: () => {
      clearTimeout(timer);
      hls.destroy();
      video.remove();
    },
  };
}

function playNatively(video: HTMLVideoElement, url: string, listener: PlayerListener): Playing {
  video.addEventListener('error', () => listener.failed(video.error?.message || 'The browser cannot play it.'));
  video.src = url;
  return {
    delay: async () => null,
    close: () => {
      video.removeAttribute('src');
      video.load();
      video.remove();
    },
  };
}

function delayOf(hls: Hls, video: HTMLVideoElement): number | null {
  return video.readyState < HTMLMediaElement.HAVE_CURRENT_DATA || hls.latency === 0 ? null : hls.latency;
}

/** The server's reason is in the body of its answer. */
function wordsOf({ response, details, error, networkDetails }: ErrorData): string {
  const body = networkDetails instanceof XMLHttpRequest && networkDetails.status >= 400 ? networkDetails.responseText.trim() : '';
  if (body !== '') return body;
  if ((response?.code ?? 0) > 0) return `The server answered ${response?.code}.`;
  return response === undefined
    ? `${details}: ${error.message}`
    : 'No answer: nothing listens there, or CrossDomains does not allow this page.';
}
