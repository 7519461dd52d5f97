/** HTML in templates: `html\`<p>${text}</p>\`` makes nodes, never markup; what stands in a slot is text or a property. */
import htm from 'htm';
import { h, type VNode } from 'preact';

/** Whatever a component may return. */
export type View = VNode | null;

/** The package's own declarations take it for a CommonJS module, which it is not in a browser. */
interface Binding {
  bind(make: typeof h): (strings: TemplateStringsArray, ...values: unknown[]) => VNode;
}

/** Tag of templates. */
export const html = (htm as unknown as Binding).bind(h);
