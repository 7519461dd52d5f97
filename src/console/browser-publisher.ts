/** Publishes the console user's camera or screen. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { faultWords } from './action.ts';
import { bitrate } from './format.ts';
import { html, type View } from './html.ts';
import { hashOf } from './routes.ts';
import { type Publication, publishWhip } from './whip.ts';

/** Where it goes. */
export interface BrowserPublisherOptions {
  /** Null: WebRTC does not listen. */
  readonly address: string | null;
  readonly place: { readonly vhost: string; readonly app: string; readonly stream: string };
}

const LOOK_MS = 1000;

interface Running {
  readonly media: MediaStream;
  readonly publication: Publication;
}

/** A preview, and what is sent. */
export function BrowserPublisher({ address, place }: BrowserPublisherOptions): View {
  const preview = useRef<HTMLVideoElement>(null);
  const running = useRef<Running | null>(null);
  const [words, setWords] = useState<{ readonly text: string; readonly isBad: boolean }>({ text: '', isBad: false });
  const [isOn, setOn] = useState(false);
  const [rate, setRate] = useState<number | null>(null);
  const stop = async (): Promise<void> => {
    const { current } = running;
    running.current = null;
    setOn(false);
    setRate(null);
    if (preview.current !== null) preview.current.srcObject = null;
    for (const track of current?.media.getTracks() ?? []) track.stop();
    await current?.publication.stop();
  };
  useEffect(() => () => void stop(), []);
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
      if (preview.current !== null) preview.current.srcObject = media;
      const publication = await publishWhip(media, address, (text, isBad) => setWords({ text, isBad }));
      running.current = { media, publication };
      for (const track of media.getTracks()) track.addEventListener('ended', () => void stop());
      setOn(true);
    } catch (error) {
      for (const track of media?.getTracks() ?? []) track.stop();
      if (preview.current !== null) preview.current.srcObject = null;
      setWords({ text: faultWords(error), isBad: true });
    }
  };
  const isPossible = address !== null && navigator.mediaDevices !== undefined;
  return html`<section class="panel">
    <h2>From this browser</h2>
    <div class="screen"><video ref=${preview} muted autoplay playsinline aria-label="Preview"></video></div>
    <div class="bar">
      ${
        isOn
          ? html`<button type="button" class="danger" onClick=${() => void stop().then(() => setWords({ text: 'Ended.', isBad: false }))}>Stop</button>
          <a href=${hashOf({ page: 'stream', ...place })} target="_blank" rel="opener">Look at the stream</a>`
          : html`<button type="button" class="main" disabled=${!isPossible} onClick=${() => void start('camera')}>Camera and microphone</button>
          <button type="button" disabled=${!isPossible} onClick=${() => void start('screen')}>Screen</button>`
      }
      <span class="quiet">${rate === null ? '' : bitrate(rate)}</span>
    </div>
    <p role="status" class=${words.isBad ? 'bad' : ''}>${isPossible || isOn ? words.text : whyNot(address)}</p>
  </section>`;
}

function whyNot(address: string | null): string {
  return address === null
    ? 'WebRTC does not listen where this page could reach it.'
    : 'Browsers give camera and screen only to pages that came over HTTPS or from this machine.';
}

function mediaOf(from: 'camera' | 'screen'): Promise<MediaStream> {
  const { mediaDevices } = navigator;
  if (from === 'screen') return mediaDevices.getDisplayMedia({ video: true, audio: true });
  return mediaDevices.getUserMedia({ video: { width: { ideal: 1280 }, height: { ideal: 720 } }, audio: true });
}
