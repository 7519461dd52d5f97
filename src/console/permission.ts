/** Whether the user may change anything: buttons that the server would refuse are hidden. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { html, type View } from './html.ts';

/** False: the token is read-only. */
export const MayWrite = createContext(true);

/** A button for a change, or for a form that makes one; hidden for read-only tokens. */
export function WriteButton({
  label,
  about,
  isDisabled = false,
  onClick,
}: {
  readonly label: string;
  /** Added to the label for screen readers: the object of the button. */
  readonly about?: string;
  readonly isDisabled?: boolean;
  readonly onClick: () => void;
}): View {
  if (!useContext(MayWrite)) return null;
  return html`<button type="button" disabled=${isDisabled} aria-label=${about === undefined ? undefined : `${label} ${about}`} onClick=${onClick}>${label}</button>`;
}
