/** A text to copy, or to read from the screen with a phone. */
import { useRef, useState } from 'preact/hooks';
import { encode } from 'uqr';
import { html, type View } from './html.ts';

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

/** The text as a QR code, dark on white regardless of the page's colours: readers expect that. */
function QrCode({ text, label }: { readonly text: string; readonly label: string }): View {
  const { data, size } = encode(text, { border: 2 });
  const squares = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
  return html`<svg class="qr" role="img" aria-label=${label} viewBox=${`0 0 ${size} ${size}`} shape-rendering="crispEdges">
    <rect width=${size} height=${size} fill="#fff" /><path d=${squares.join('')} fill="#000" />
  </svg>`;
}

/** Pages without TLS on other machines have no clipboard: they use the browser's copy command for the selected text. */
async function copyText(text: string, field: HTMLInputElement | null): Promise<boolean> {
  field?.select();
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return document.execCommand('copy');
  }
}
