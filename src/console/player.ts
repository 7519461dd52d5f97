/** The plain player of a stream: WebRTC first, LL-HLS if WebRTC fails, and a text if media is missing. */
import { loadHls, playHls } from './play-hls.ts';
import { loadWebrtc, playWebrtc } from './play-webrtc.ts';
import type { Playing } from './playing.ts';
import { originOf, type PortPair } from './server-facts.ts';

/** Time limit for the first frame over WebRTC. */
const FIRST_MS = 10_000;
const AGAIN_MS = 5000;

interface Way {
  readonly label: string;
  readonly url: string | null;
  /** Loads the module of the player. */
  readonly load: () => Promise<unknown>;
  readonly play: typeof playHls;
}

const main = document.querySelector('main');
const screen = document.getElementById('screen');
const bar = document.getElementById('bar');
const words = document.getElementById('words');
const { webrtc, llhls } = JSON.parse(main?.dataset['ports'] ?? '{}') as { readonly webrtc?: PortPair; readonly llhls?: PortPair };
/** `/APP/STREAM`, escaped as received; the query is passed on for access control. */
const place = location.pathname.split('/').slice(-2).join('/');
const address = (origin: string | null, file: string): string | null =>
  origin === null ? null : `${origin}/${place}${file}${location.search}`;
const ways: readonly Way[] = [
  { label: 'WebRTC', url: address(originOf(webrtc, ['ws', 'wss']), ''), load: loadWebrtc, play: playWebrtc },
  { label: 'LL-HLS', url: address(originOf(llhls), '/llhls.m3u8'), load: loadHls, play: playHls },
];
let current: Playing | null = null;
let turn = 0;
let timer = 0;

function say(text: string): void {
  if (words !== null) words.textContent = text;
}

/** Plays by `way`; calls `onFailed` once with the reason if that fails. */
function start(way: Way, onFailed: (why: string) => void): void {
  turn += 1;
  const own = turn;
  let isOver = false;
  let hasPlayed = false;
  const fail = (why: string): void => {
    if (isOver || own !== turn) return;
    isOver = true;
    clearTimeout(timer);
    onFailed(why);
  };
  clearTimeout(timer);
  current?.close();
  current = null;
  for (const button of bar?.querySelectorAll('button') ?? []) button.setAttribute('aria-pressed', String(button.textContent === way.label));
  if (way.url === null || screen === null) {
    fail('is not available here.');
    return;
  }
  say(`Connecting over ${way.label} …`);
  timer = setTimeout(() => !hasPlayed && fail('no frame arrived in time.'), FIRST_MS);
  const listener = {
    playing: () => {
      if (own !== turn) return;
      hasPlayed = true;
      clearTimeout(timer);
      say(missingOf(way));
    },
    failed: fail,
  };
  void attempt(way.url, screen);

  async function attempt(url: string, place: HTMLElement): Promise<void> {
    try {
      await way.load();
      // The viewer has chosen another way meanwhile.
      if (own !== turn || isOver) return;
      const playing = await way.play(place, url, listener);
      if (own === turn && !isOver) current = playing;
      else playing.close();
    } catch (error) {
      fail(String(error));
    }
  }
}

/** Tries each way in turn, then again after a while. */
function begin(at = 0, said: readonly string[] = []): void {
  const way = ways[at];
  if (way !== undefined) {
    start(way, (why) => begin(at + 1, [...said, `${way.label}: ${why}`]));
    return;
  }
  rest(said, () => begin());
}

/** Plays only the way that the viewer chose, and retries it: a stream that ended may start again. */
function keepTo(way: Way): void {
  start(way, (why) => rest([`${way.label}: ${why}`], () => keepTo(way)));
}

function rest(said: readonly string[], next: () => void): void {
  current?.close();
  current = null;
  say(`${said.join('\n')}\nTrying again …`);
  timer = setTimeout(next, AGAIN_MS);
}

/** WebRTC cannot carry AAC, so such a stream has no audio there. */
function missingOf({ label }: Way): string {
  const media = screen?.querySelector('video')?.srcObject;
  if (!(media instanceof MediaStream)) return '';
  if (media.getAudioTracks().length === 0)
    return `No audio over ${label}: the stream has none, or none in Opus, which WebRTC needs. LL-HLS may have it.`;
  return media.getVideoTracks().length === 0
    ? `No video over ${label}: the stream has none, or none that this browser plays over WebRTC. LL-HLS may have it.`
    : '';
}

for (const way of ways) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = way.label;
  button.disabled = way.url === null;
  button.addEventListener('click', () => keepTo(way));
  bar?.append(button);
}
document.title = decodeURI(place);
begin();
