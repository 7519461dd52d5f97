/** Buttons that change something, with what the server answers. */
import { useContext, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { faultOf } from './api-client.ts';
import { html, type View } from './html.ts';
import { MayWrite } from './permission.ts';

/** A button. */
export interface ActionOptions {
  readonly label: string;
  /** Rejects with what went wrong. */
  readonly run: () => Promise<unknown>;
  /** Asked before; absent: nothing is asked. */
  readonly question?: string;
  readonly isDanger?: boolean;
  readonly isDisabled?: boolean;
  /** For those who cannot see what the button belongs to. */
  readonly about?: string;
  readonly onDone?: () => void;
}

/** Runs once at a time; what fails is told beside it. Not shown to who may only read. */
export function Action({ label, run, question, isDanger, isDisabled = false, about, onDone }: ActionOptions): View {
  const [isBusy, setBusy] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const [fault, setFault] = useState('');
  const mayWrite = useContext(MayWrite);
  const place = useRef<HTMLElement>(null);
  useLayoutEffect(() => () => keepFocus(place.current), []);
  const go = async (): Promise<void> => {
    if (isBusy) return;
    setAsking(false);
    setBusy(true);
    setFault('');
    try {
      await run();
      onDone?.();
    } catch (error) {
      setFault(faultWords(error));
    }
    setBusy(false);
  };
  if (!mayWrite) return null;
  if (isAsking) {
    return html`<span ref=${place} class="asking" role="group" aria-label=${question}>${question}
      <button type="button" class="danger" onClick=${() => void go()}>${label}</button>
      <button type="button" onClick=${() => setAsking(false)}>Keep</button></span>`;
  }
  return html`<span ref=${place} class="action"><button type="button" class=${isDanger === true ? 'danger' : ''} disabled=${isDisabled} aria-disabled=${isBusy || undefined}
    aria-label=${about === undefined ? undefined : `${label} ${about}`}
    onClick=${() => (question === undefined ? void go() : setAsking(true))}>${label}</button>
    <span role="alert" class="bad">${fault}</span></span>`;
}

/** A button that goes with what it ended leaves its focus to the heading of its section: whoever uses the keyboard stays where they are. */
function keepFocus(place: HTMLElement | null): void {
  const heading = place?.contains(document.activeElement) === true ? place.closest('section')?.querySelector('h2') : null;
  if (heading === null || heading === undefined) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}

/** The server's error, or another one. */
export function faultWords(error: unknown): string {
  return faultOf(error).message;
}
