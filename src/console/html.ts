/** HTML templates: `html\`<p>${text}</p>\`` creates nodes, never markup; a slot is a text or a property. */
import htm from 'htm';
import { h, type VNode } from 'preact';

/** A component's result. */
export type View = VNode | null;

/** The package's own declarations describe a CommonJS module, which it is not in a browser. */
interface Binding {
  bind(make: typeof h): (strings: TemplateStringsArray, ...values: unknown[]) => VNode;
}

/** Template tag. */
export const html = (htm as unknown as Binding).bind(h);
