/** Publishes the console user's camera or screen. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { faultWords } from './action.ts';
import { formatBitrate } from './format.ts';
import { html, type View } from './html.ts';
import { hashOf } from './routes.ts';
import { type Publication, publishWhip } from './whip.ts';

/** Target of the publication. */
export interface BrowserPublisherOptions {
  /** Null: WebRTC is not enabled. */
  readonly address: string | null;
  readonly place: { readonly vhost: string; readonly app: string; readonly stream: string };
}

const LOOK_MS = 1000;

interface Running {
  readonly media: MediaStream;
  readonly publication: Publication;
}

/** A preview and the bitrate sent. */
export function BrowserPublisher({ address, place }: BrowserPublisherOptions): View {
  const preview = useRef<HTMLVideoElement>(null);
  const running = useRef<Running | null>(null);
  const [words, setWords] = useState<{ readonly text: string; readonly isBad: boolean }>({ text: '', isBad: false });
  const [isOn, setOn] = useState(false);
  const [hasMedia, setMedia] = useState(false);
  const [rate, setRate] = useState<number | null>(null);
  const show = (media: MediaStream | null): void => {
    if (preview.current !== null) preview.current.srcObject = media;
    setMedia(media !== null);
  };
  const stop = async (): Promise<void> => {
    const { current } = running;
    running.current = null;
    setOn(false);
    setRate(null);
    show(null);
    for (const track of current?.media.getTracks() ?? []) track.stop();
    await current?.publication.stop();
  };
  useEffect(() => {
    // A tab that closes ends it now; the server alone would notice after half a minute.
    const leave = (): void => void stop();
    addEventListener('pagehide', leave);
    return () => {
      removeEventListener('pagehide', leave);
      leave();
    };
  }, []);
  useEffect(() => {
    if (!isOn) return undefined;
    const timer = setInterval(() => void running.current?.publication.sending().then(setRate), LOOK_MS);
    return () => clearInterval(timer);
  }, [isOn]);
  const start = async (from: 'camera' | 'screen'): Promise<void> => {
    if (address === null) return;
    setWords({ text: 'Asking for permission …', isBad: false });
    let media: MediaStream | null = null;
    try {
      media = await mediaOf(from);
      show(media);
      const publication = await publishWhip(media, address, (text, isBad) => setWords({ text, isBad }));
      running.current = { media, publication };
      for (const track of media.getTracks()) track.addEventListener('ended', () => void stop());
      setOn(true);
    } catch (error) {
      for (const track of media?.getTracks() ?? []) track.stop();
      show(null);
      setWords({ text: faultWords(error), isBad: true });
    }
  };
  const [hasCamera, hasScreen] = [offers('getUserMedia'), offers('getDisplayMedia')];
  const isPossible = address !== null && (hasCamera || hasScreen);
  const beginnings = html`<button type="button" class="main" disabled=${!hasCamera} onClick=${() => void start('camera')}>Camera and microphone</button>
    ${hasScreen ? html`<button type="button" onClick=${() => void start('screen')}>Screen</button>` : null}`;
  const endings = html`<button type="button" class="danger" onClick=${() => void stop().then(() => setWords({ text: 'Ended.', isBad: false }))}>Stop</button>
    <a href=${hashOf({ page: 'stream', ...place })} target="_blank" rel="opener">View the stream</a>`;
  return html`<section class="panel">
    <h2>From this browser</h2>
    <div class="screen" hidden=${!hasMedia}><video ref=${preview} muted autoplay playsinline aria-label="Preview"></video></div>
    ${isOn || isPossible ? html`<div class="bar">${isOn ? endings : beginnings}<span class="quiet">${rate === null ? '' : formatBitrate(rate)}</span></div>` : null}
    <p role="status" class=${words.isBad ? 'bad' : ''}>${isPossible || isOn ? words.text : whyNot(address)}</p>
  </section>`;
}

function whyNot(address: string | null): string {
  if (address === null) {
    return location.protocol === 'https:'
      ? 'Not possible from this page: it came over HTTPS, and the WebRTC provider has no port with TLS (TLSPort).'
      : 'Not possible: the WebRTC provider does not listen.';
  }
  return `Not possible from this page: browsers give camera and screen only to pages that came over HTTPS or from the same machine, and this one came from ${location.origin}. Open the console over HTTPS, or use a program with the addresses of this page.`;
}

/** Phones cannot share their screen, and insecure pages can share nothing. */
function offers(what: 'getUserMedia' | 'getDisplayMedia'): boolean {
  return typeof navigator.mediaDevices?.[what] === 'function';
}

function mediaOf(from: 'camera' | 'screen'): Promise<MediaStream> {
  const { mediaDevices } = navigator;
  if (from === 'screen') return mediaDevices.getDisplayMedia({ video: true, audio: true });
  return mediaDevices.getUserMedia({ video: { width: { ideal: 1280 }, height: { ideal: 720 } }, audio: true });
}
