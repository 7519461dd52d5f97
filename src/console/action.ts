/** Buttons for changes, with the server's error beside them. */
import { useContext, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { faultOf } from './api-client.ts';
import { html, type View } from './html.ts';
import { MayWrite } from './permission.ts';

/** A button. */
export interface ActionOptions {
  readonly label: string;
  /** Rejects with the error to show. */
  readonly run: () => Promise<unknown>;
  /** Confirmation before the run; absent: none. */
  readonly question?: string;
  readonly isDanger?: boolean;
  readonly isDisabled?: boolean;
  /** Added to the label for screen readers: the object of the action. */
  readonly about?: string;
  readonly onDone?: () => void;
}

/** Runs once at a time and shows errors beside the button. Hidden for read-only tokens. */
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

/** Moves the focus to the heading of the section if the button is removed with its object, so that keyboard users keep their place. */
function keepFocus(place: HTMLElement | null): void {
  const heading = place?.contains(document.activeElement) === true ? place.closest('section')?.querySelector('h2') : null;
  if (heading === null || heading === undefined) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}

/** The text of an error of the server or of any other. */
export function faultWords(error: unknown): string {
  return faultOf(error).message;
}
