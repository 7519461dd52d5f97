/** A text to copy. */
import { useRef, useState } from 'preact/hooks';
import { html, type View } from './html.ts';
import { QrCode } from './qr-code.ts';

const SHOWN_MS = 2000;

/** A field with a button that copies it; `hasCode` adds a button that shows it as a QR code. */
export function CopyField({
  label,
  text,
  hasCode = false,
}: {
  readonly label: string;
  readonly text: string;
  readonly hasCode?: boolean;
}): View {
  const field = useRef<HTMLInputElement>(null);
  const [words, setWords] = useState('');
  const [isOpen, setOpen] = useState(false);
  const copy = async (): Promise<void> => {
    const isCopied = await copyText(text, field.current);
    setWords(isCopied ? 'Copied' : 'Selected: copy it with the keyboard');
    setTimeout(() => setWords(''), SHOWN_MS);
  };
  return html`<div class="copy">
    <label>${label}<input ref=${field} readonly spellcheck=${false} value=${text} /></label>
    <button type="button" aria-label=${`Copy: ${label}`} onClick=${() => void copy()}>Copy</button>
    ${hasCode ? html`<button type="button" aria-expanded=${isOpen} aria-label=${`QR code: ${label}`} onClick=${() => setOpen(!isOpen)}>QR</button>` : null}
    <span role="status" class="good">${words}</span>
    ${isOpen ? html`<div class="copied-code"><${QrCode} text=${text} label=${`QR code of ${text}`} /></div>` : null}
  </div>`;
}

/** Pages without TLS that are not on this machine have no clipboard: they have the command of the field's menu, which copies what is marked. */
async function copyText(text: string, field: HTMLInputElement | null): Promise<boolean> {
  field?.select();
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return document.execCommand('copy');
  }
}
