/** A read-only view of a definition. */
import { html, type View } from './html.ts';
import { isObject, type Json } from './schema-document.ts';

/** Nested members and items; secrets as the server shows them. */
export function JsonView({ value }: { readonly value: Json }): View {
  if (Array.isArray(value)) {
    if (value.every((item: Json) => !isObject(item)))
      return html`<span>${value.map((item: Json) => textOf(item)).join(', ') || '–'}</span>`;
    return html`<ol>${value.map((item: Json, n: number) => html`<li key=${n}><${JsonView} value=${item} /></li>`)}</ol>`;
  }
  if (!isObject(value)) return html`<span>${textOf(value)}</span>`;
  const entries = Object.entries(value);
  if (entries.length === 0) return html`<span class="quiet">on, with default settings</span>`;
  return html`<dl class="json">${entries.map(([name, member]) => html`<dt key=${name}>${name}</dt><dd class=${isNested(member) ? 'nested' : ''}><${JsonView} value=${member} /></dd>`)}</dl>`;
}

function isNested(value: Json): boolean {
  return Array.isArray(value) ? value.some((item: Json) => isObject(item)) : isObject(value) && Object.keys(value).length > 0;
}

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
