/** The definition of one application, with forms for its changeable parts. */
import { pathWith } from '../client/path.ts';
import { Action } from './action.ts';
import type { Context } from './context.ts';
import { html, type View } from './html.ts';
import { JsonView } from './json-view.ts';
import { WriteButton } from './permission.ts';
import { hashOf } from './routes.ts';
import { beginningOf, isObject, type JsonObject, patchOf, type Schema, schemaWithout, without } from './schema-document.ts';

/** Path of an application. */
export const APP = '/v1/vhosts/{vhost}/apps/{app}';
/** Members with routes of their own, and members that cannot be changed. */
const FIXED = ['name', 'dynamic', 'outputProfiles', 'publishKeys', 'playTokens'];
/** The lists of keys, with the names that the pages use. */
const KEYS = [
  { list: 'publishKeys', noun: 'publish key', secret: 'key', on: 'A publisher must present one of them.' },
  { list: 'playTokens', noun: 'play token', secret: 'token', on: 'A viewer must present one of them.' },
] as const;
const RESTARTS = 'The application restarts: its streams end, and viewers must reconnect.';

/** An open form. */
export interface OpenForm {
  readonly title: string;
  readonly schema: Schema;
  readonly value: JsonObject;
  readonly warning?: string;
  readonly submitLabel: string;
  readonly onSubmit: (value: JsonObject) => Promise<unknown>;
}

/** Opens a form with a schema of the API. */
export type ShowForm = (schema: string, make: (schema: Schema) => Omit<OpenForm, 'schema'> & Partial<OpenForm>) => void;

/** A secret that the server shows only once. */
export interface Secret {
  readonly about: string;
  readonly label: string;
  readonly text: string;
}

interface PanelOptions {
  readonly context: Context;
  readonly vhost: string;
  readonly definition: JsonObject;
  /** The virtual host is declared in a configuration file. */
  readonly isReadOnly: boolean;
  readonly show: ShowForm;
  readonly onSecret: (secret: Secret) => void;
  readonly onDone: () => void;
}

/** Folded until opened. */
export function ApplicationPanel(options: PanelOptions): View {
  const { context, vhost, definition, isReadOnly, show, onDone } = options;
  const { client } = context;
  const app = String(definition['name']);
  const path = { vhost, app };
  const change = (): void =>
    show('ApplicationDefinition', (schema) => ({
      title: `Change ${vhost} / ${app}`,
      schema: schemaWithout(schema, FIXED),
      value: without(definition, FIXED),
      warning: RESTARTS,
      submitLabel: 'Change and restart',
      onSubmit: async (value) => {
        const patch = patchOf(without(definition, FIXED), value);
        if (patch !== undefined) await client.request('PATCH', pathWith(APP, path), { body: patch });
      },
    }));
  const pull = (): void =>
    show('PullRequest', (schema) => ({
      title: `Pull a stream into ${vhost} / ${app}`,
      value: { ...(beginningOf(schema) as JsonObject), urls: ['rtsp://'] },
      submitLabel: 'Pull',
      onSubmit: async (value) => {
        await client.request('POST', pathWith(`${APP}/streams`, path), { body: value });
        location.assign(hashOf({ page: 'stream', vhost, app, stream: String(value['name']) }));
      },
    }));
  return html`<details><summary>${app} <span class="quiet">application</span></summary>
    <div class="bar">
      ${app === '*' ? null : html`<${WriteButton} label="Pull a stream" about=${`into ${vhost}/${app}`} onClick=${pull} />`}
      ${
        isReadOnly
          ? null
          : html`<${WriteButton} label="Change" onClick=${change} />
      <${Action} label="Delete" about=${`${vhost}/${app}`} isDanger question="Delete it? Its streams end." run=${() => client.delete(APP, { path })} onDone=${onDone} />`
      }</div>
    <${Profiles} ...${options} app=${app} />
    ${KEYS.map((keys) => html`<${Keys} key=${keys.list} ...${options} app=${app} keys=${keys} />`)}
    <${JsonView} value=${without(definition, ['outputProfiles', 'publishKeys', 'playTokens'])} />
  </details>`;
}

type PartOptions = PanelOptions & { readonly app: string };

function Profiles({ context: { client }, vhost, app, definition, isReadOnly, show, onDone }: PartOptions): View {
  const path = { vhost, app };
  const profiles = itemsOf(isObject(definition['outputProfiles']) ? definition['outputProfiles']['outputProfile'] : undefined);
  const make = (): void =>
    show('OutputProfileDefinition', () => ({
      title: `New output profile of ${vhost} / ${app}`,
      value: {
        name: '',
        outputStreamName: '${OriginStreamName}_new',
        encodes: { videos: [{ name: 'video', bypass: true }], audios: [{ name: 'audio', bypass: true }] },
      },
      warning: RESTARTS,
      submitLabel: 'Create',
      onSubmit: (value) => client.request('POST', pathWith(`${APP}/outputProfiles`, path), { body: [value] }),
    }));
  const change = (profile: JsonObject): void =>
    show('OutputProfileDefinition', (schema) => ({
      title: `Change ${String(profile['name'])} of ${vhost} / ${app}`,
      schema: schemaWithout(schema, ['name']),
      value: without(profile, ['name']),
      warning: RESTARTS,
      submitLabel: 'Change',
      onSubmit: async (value) => {
        const patch = patchOf(without(profile, ['name']), value);
        const at = pathWith(`${APP}/outputProfiles/{profile}`, { ...path, profile: String(profile['name']) });
        if (patch !== undefined) await client.request('PATCH', at, { body: patch });
      },
    }));
  return html`<section class="part" aria-label=${`Output profiles of ${vhost}/${app}`}><div class="bar"><h3>Output profiles</h3>
      ${isReadOnly ? null : html`<${WriteButton} label="New output profile" onClick=${make} />`}</div>
    ${profiles.length === 0 ? html`<p class="quiet">None: streams have no output, so nobody can watch them.</p>` : null}
    ${profiles.map((profile) => {
      const name = String(profile['name']);
      return html`<details key=${name}><summary>${name} <span class="quiet">makes ${String(profile['outputStreamName'])}</span></summary>
        ${
          isReadOnly
            ? null
            : html`<div class="bar"><${WriteButton} label="Change" about=${`profile ${name}`} onClick=${() => change(profile)} />
          <${Action} label="Delete" about=${`profile ${name}`} isDanger question="Delete it? The application restarts." run=${() => client.delete(`${APP}/outputProfiles/{profile}`, { path: { ...path, profile: name } })} onDone=${onDone} /></div>`
        }
        <${JsonView} value=${profile} /></details>`;
    })}
  </section>`;
}

function Keys({
  context: { client },
  vhost,
  app,
  definition,
  isReadOnly,
  show,
  onSecret,
  onDone,
  keys: { list, noun, secret, on },
}: PartOptions & { readonly keys: (typeof KEYS)[number] }): View {
  const path = { vhost, app };
  const items = itemsOf(definition[list]);
  const make = (): void =>
    show('AccessKeyRequest', () => ({
      title: `New ${noun} of ${vhost} / ${app}`,
      value: { name: '' },
      ...(items.length === 0 && { warning: `This is the first ${noun}. ${on}` }),
      submitLabel: 'Create',
      onSubmit: async (value) => {
        const { body } = await client.request('POST', pathWith(`${APP}/${list}`, path), { body: value });
        const made = (body as { readonly response?: Readonly<Record<string, unknown>> }).response?.[secret];
        if (typeof made === 'string')
          onSecret({ about: `The ${noun} '${String(value['name'])}' of ${vhost} / ${app}.`, label: noun, text: made });
      },
    }));
  return html`<section class="part" aria-label=${`${noun}s of ${vhost}/${app}`}><div class="bar"><h3>${`${noun[0]?.toUpperCase()}${noun.slice(1)}s`}</h3>
      ${isReadOnly ? null : html`<${WriteButton} label=${`New ${noun}`} onClick=${make} />`}</div>
    ${items.length === 0 ? html`<p class="quiet">None: ${list === 'publishKeys' ? 'publishing needs no key' : 'watching needs no token'}.</p>` : null}
    ${
      items.length === 0
        ? null
        : html`<ul class="keys">${items.map((item) => {
            const name = String(item['name']);
            const facts = Object.entries(without(item, ['name'])).map(
              ([member, value]) => `${member}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
            );
            return html`<li key=${name}><b>${name}</b> <span class="quiet">${facts.join(', ')}</span>
        ${isReadOnly ? null : html`<${Action} label="Remove" about=${`${noun} ${name}`} isDanger question="Remove it? Sessions that use it are disconnected." run=${() => client.request('DELETE', pathWith(`${APP}/${list}/{key}`, { ...path, key: name }))} onDone=${onDone} />`}</li>`;
          })}</ul>`
    }
  </section>`;
}

function itemsOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter((item): item is JsonObject => isObject(item)) : [];
}
