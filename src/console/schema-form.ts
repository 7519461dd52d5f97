/** Forms from the schemas of the API: each set value has a field, other members can be added. */
import { useId, useState } from 'preact/hooks';
import { faultWords } from './action.ts';
import { html, type View } from './html.ts';
import { beginningOf, choicesOf, fieldMeant, isObject, type Json, type JsonObject, type Schema } from './schema-document.ts';

/** A form. */
export interface FormOptions {
  readonly title: string;
  readonly schema: Schema;
  readonly value: JsonObject;
  readonly submitLabel: string;
  /** Shown above the button. */
  readonly warning?: string;
  /** Rejects with the server's error. */
  readonly onSubmit: (value: JsonObject) => Promise<unknown>;
  readonly onClose: () => void;
}

interface Shared {
  readonly fault: { readonly path: string | null; readonly words: string } | null;
}

/** Shows an error of the server at the field that it names. */
export function SchemaForm({ title, schema, value: initial, submitLabel, warning, onSubmit, onClose }: FormOptions): View {
  const [value, setValue] = useState<JsonObject>(initial);
  const [fault, setFault] = useState<Shared['fault']>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setFault(null);
    try {
      await onSubmit(value);
      onClose();
    } catch (error) {
      const words = faultWords(error);
      setFault({ path: fieldMeant(words, value), words });
      setBusy(false);
    }
  };
  return html`<form class="panel schema" aria-label=${title} onSubmit=${submit}>
    <h2>${title}</h2>
    <${Members} schema=${schema} value=${value} path="" shared=${{ fault }} onChange=${(next: Json) => setValue(next as JsonObject)} />
    ${warning === undefined ? null : html`<p class="warning">${warning}</p>`}
    ${fault !== null && fault.path === null ? html`<p role="alert" class="bad">${fault.words}</p>` : null}
    <div class="bar"><button type="submit" class="main" disabled=${isBusy}>${submitLabel}</button><button type="button" onClick=${onClose}>Cancel</button></div>
  </form>`;
}

interface FieldOptions {
  readonly label: string;
  readonly schema: Schema;
  readonly value: Json;
  readonly path: string;
  readonly shared: Shared;
  readonly onChange: (value: Json) => void;
  /** Absent: the field is required. */
  readonly onRemove?: (() => void) | undefined;
}

type InnerOptions = Omit<FieldOptions, 'label' | 'onRemove'>;

function Field(options: FieldOptions): View {
  const { label, schema, value, path, shared, onRemove } = options;
  const id = useId();
  if (schema.type === 'object' || schema.type === 'array') {
    const inner = schema.type === 'array' ? html`<${Items} ...${options} />` : html`<${Members} ...${options} />`;
    return html`<fieldset><legend>${label}</legend>
      ${schema.description === undefined ? null : html`<p class="quiet small">${schema.description}</p>`}
      <${FaultAt} path=${path} shared=${shared} />
      ${inner}${onRemove === undefined ? null : html`<button type="button" class="small danger" aria-label=${`Remove ${path}`} onClick=${onRemove}>Remove</button>`}
    </fieldset>`;
  }
  const isWrong = shared.fault?.path === path;
  const common = {
    id,
    'aria-describedby': `${id}-help`,
    'aria-invalid': isWrong,
  };
  return html`<div class="field"><label for=${id}>${label}</label>
    <${Control} schema=${schema} value=${value} common=${common} onChange=${options.onChange} />
    ${onRemove === undefined ? null : html`<button type="button" class="small" aria-label=${`Remove ${path}`} onClick=${onRemove}>Remove</button>`}
    <p id=${`${id}-help`} class="quiet small">${schema.description}<${FaultAt} path=${path} shared=${shared} /></p>
  </div>`;
}

interface ControlOptions {
  readonly schema: Schema;
  readonly value: Json;
  readonly common: object;
  readonly onChange: (value: Json) => void;
}

function Control({ schema, value, common, onChange }: ControlOptions): View {
  const choices = choicesOf(schema);
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const target = (event: Event): HTMLInputElement => event.target as HTMLInputElement;
  if (choices !== null) {
    return html`<select ...${common} value=${text} onChange=${(event: Event) => onChange(target(event).value)}>${choices.map((choice) => html`<option key=${choice} value=${choice}>${choice === '' ? '(none)' : choice}</option>`)}</select>`;
  }
  if (schema.type === 'boolean') {
    return html`<input type="checkbox" ...${common} checked=${value === true} onChange=${(event: Event) => onChange(target(event).checked)} />`;
  }
  if (schema.type === 'integer' || schema.type === 'number') {
    // The server gets invalid numbers unchanged, and its error explains them.
    const read = (typed: string): Json => (typed.trim() === '' || Number.isNaN(Number(typed)) ? typed : Number(typed));
    return html`<input inputmode="decimal" ...${common} value=${text} onInput=${(event: Event) => onChange(read(target(event).value))} />`;
  }
  return html`<input spellcheck=${false} ...${common} value=${text} onInput=${(event: Event) => onChange(target(event).value)} />`;
}

function FaultAt({ path, shared: { fault } }: { readonly path: string; readonly shared: Shared }): View {
  return fault !== null && fault.path === path ? html`<span role="alert" class="bad fault">${fault.words}</span>` : null;
}

function Members({ schema, value, path, shared, onChange }: InnerOptions): View {
  const members = isObject(value) ? value : {};
  const known = Object.entries(schema.properties ?? {});
  const isShown = (name: string): boolean => name in members;
  const below = (name: string): string => (path === '' ? name : `${path}.${name}`);
  const absent = known.filter(([name, member]) => !isShown(name) && member.deprecated !== true);
  const without = (name: string): JsonObject => Object.fromEntries(Object.entries(members).filter(([other]) => other !== name));
  const fields = known
    .filter(([name]) => isShown(name))
    .map(
      ([
        name,
        member,
      ]) => html`<${Field} key=${name} label=${name} schema=${member} value=${members[name] ?? null} path=${below(name)} shared=${shared}
        onChange=${(next: Json) => onChange({ ...members, [name]: next })}
        onRemove=${schema.required?.includes(name) === true ? undefined : () => onChange(without(name))} />`,
    );
  const add = (event: Event): void => {
    const select = event.target as HTMLSelectElement;
    const member = schema.properties?.[select.value];
    if (member !== undefined) onChange({ ...members, [select.value]: beginningOf(member) });
    select.value = '';
  };
  return html`${fields}${
    absent.length === 0
      ? null
      : html`<select class="small" aria-label=${`Add to ${path === '' ? 'the top' : path}`} value="" onChange=${add}>
      <option value="">Add …</option>
      ${absent.map(([name]) => html`<option key=${name} value=${name}>${name}</option>`)}
    </select>`
  }`;
}

function Items({ schema, value, path, shared, onChange }: InnerOptions): View {
  const items: readonly Json[] = Array.isArray(value) ? value : [];
  const item = schema.items ?? {};
  return html`${items.map(
    (each, n) => html`<${Field} key=${n} label=${`${n + 1}`} schema=${item} value=${each} path=${`${path}[${n}]`} shared=${shared}
      onChange=${(next: Json) => onChange(items.map((other, m) => (m === n ? next : other)))}
      onRemove=${() => onChange(items.filter((_other, m) => m !== n))} />`,
  )}<button type="button" class="small" aria-label=${`Add item to ${path}`} onClick=${() => onChange([...items, beginningOf(item)])}>Add item</button>`;
}
