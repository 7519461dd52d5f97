/** Buttons that change something, with what the server answers. */
import { useContext, useState } from 'preact/hooks';
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
  const go = async (): Promise<void> => {
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
    return html`<span class="asking" role="group" aria-label=${question}>${question}
      <button type="button" class="danger" onClick=${() => void go()}>${label}</button>
      <button type="button" onClick=${() => setAsking(false)}>Keep</button></span>`;
  }
  return html`<span class="action"><button type="button" class=${isDanger === true ? 'danger' : ''} disabled=${isBusy || isDisabled}
    aria-label=${about === undefined ? undefined : `${label} ${about}`}
    onClick=${() => (question === undefined ? void go() : setAsking(true))}>${label}</button>
    <span role="alert" class="bad">${fault}</span></span>`;
}

/** The server's error, or another one. */
export function faultWords(error: unknown): string {
  return faultOf(error).message;
}
