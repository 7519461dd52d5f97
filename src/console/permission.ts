/** Whether the logged-in user may change anything: buttons that would be refused are not shown. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { html, type View } from './html.ts';

/** False: the token may only read. */
export const MayWrite = createContext(true);

/** A button that changes something, or opens a form that does; nothing for a token that may only read. */
export function WriteButton({
  label,
  about,
  isDisabled = false,
  onClick,
}: {
  readonly label: string;
  /** For those who cannot see what the button belongs to. */
  readonly about?: string;
  readonly isDisabled?: boolean;
  readonly onClick: () => void;
}): View {
  if (!useContext(MayWrite)) return null;
  return html`<button type="button" disabled=${isDisabled} aria-label=${about === undefined ? undefined : `${label} ${about}`} onClick=${onClick}>${label}</button>`;
}
