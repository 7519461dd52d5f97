/** A text as a QR code, for phones. */
import { encode } from 'uqr';
import { html, type View } from './html.ts';

/** Dark on white regardless of the page's colours: readers expect that. */
export function QrCode({ text, label }: { readonly text: string; readonly label: string }): View {
  const { data, size } = encode(text, { border: 2 });
  const squares = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
  return html`<svg class="qr" role="img" aria-label=${label} viewBox=${`0 0 ${size} ${size}`} shape-rendering="crispEdges">
    <rect width=${size} height=${size} fill="#fff" /><path d=${squares.join('')} fill="#000" />
  </svg>`;
}
