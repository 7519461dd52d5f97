/** One player with its delay. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { html, type View } from './html.ts';
import type { PlayerListener, Playing } from './playing.ts';

/** The stream of a panel. */
export interface PlayerOptions {
  readonly title: string;
  /** The reference point of the delay. */
  readonly delayOf: string;
  /** Null: not available, for the reason in `missing`. */
  readonly url: string | null;
  readonly missing: string;
  readonly isOn: boolean;
  readonly play: (place: HTMLElement, url: string, listener: PlayerListener) => Promise<Playing>;
}

const LOOK_MS = 1000;

/** Plays while `isOn`. */
export function PlayerPanel({ title, delayOf, url, missing, isOn, play }: PlayerOptions): View {
  const place = useRef<HTMLDivElement>(null);
  const [words, setWords] = useState('');
  const [delay, setDelay] = useState<number | null>(null);
  useEffect(() => {
    const element = place.current;
    if (!isOn || url === null || element === null) return undefined;
    let isOver = false;
    let playing: Playing | null = null;
    setWords('Connecting …');
    const listener = {
      playing: () => setWords(''),
      failed: (why: string) => setWords(why),
    };
    play(element, url, listener).then(
      (started) => {
        playing = started;
        if (isOver) started.close();
      },
      (error) => setWords(String(error)),
    );
    const timer = setInterval(() => void playing?.delay().then((seconds) => !isOver && seconds !== null && setDelay(seconds)), LOOK_MS);
    return () => {
      isOver = true;
      clearInterval(timer);
      playing?.close();
      setDelay(null);
      setWords('');
    };
  }, [isOn, url]);
  const state = url === null ? missing : words;
  return html`<section class="panel player" aria-label=${`${title} player`}>
    <h2>${title} <span class="quiet">${delay === null ? '' : `${delay.toFixed(2)} s ${delayOf}`}</span></h2>
    <div class="screen"><div ref=${place}></div>${isOn && url !== null ? null : html`<p class="quiet">${url === null ? '' : 'Not playing'}</p>`}</div>
    <p role="status" class=${state === '' ? '' : 'warning'}>${state}</p>
  </section>`;
}
