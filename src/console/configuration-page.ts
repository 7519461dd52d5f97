/** Virtual hosts and applications as they are defined, with what may be changed. */
import { useState } from 'preact/hooks';
import { Action } from './action.ts';
import { at } from './api-client.ts';
import type { Context } from './context.ts';
import { html, type View } from './html.ts';
import { JsonView } from './json-view.ts';
import { beginningOf, type Json, type JsonObject, patchOf, type Schema, schemaOf, schemaWithout, without } from './schema-document.ts';
import { SchemaForm } from './schema-form.ts';
import { appPath, inTurns } from './stream-list.ts';
import { useLive } from './use-live.ts';

/** Has routes of its own, or no way to be changed. */
const FIXED = ['name', 'dynamic', 'outputProfiles'];
/** A pass-through profile, without which an application serves nothing. */
const PROFILE: Json = {
  outputProfile: [
    {
      name: 'bypass',
      outputStreamName: '${OriginStreamName}',
      encodes: { videos: [{ name: 'bypass_video', bypass: true }], audios: [{ name: 'bypass_audio', bypass: true }] },
    },
  ],
};

interface Host {
  readonly name: string;
  readonly definition: JsonObject;
  readonly apps: readonly JsonObject[];
}

interface Form {
  readonly title: string;
  readonly schema: Schema;
  readonly value: JsonObject;
  readonly warning?: string;
  readonly submitLabel: string;
  readonly onSubmit: (value: JsonObject) => Promise<unknown>;
}

/** One part for each virtual host; a form at a time. */
export function ConfigurationPage({ context }: { readonly context: Context }): View {
  const { client, updates, server } = context;
  const [form, setForm] = useState<Form | null>(null);
  const [fault, setFault] = useState('');
  const {
    data,
    fault: missing,
    refresh,
  } = useLive(
    updates,
    'configuration',
    async (): Promise<Host[]> => {
      const names = await client.get<string[]>('/v1/vhosts');
      return inTurns(names, async (name) => {
        const definition = await client.get<JsonObject>(`/v1/vhosts${at(name)}`);
        const apps = await client.get<string[]>(`/v1/vhosts${at(name)}/apps`);
        return { name, definition, apps: await inTurns(apps, (app) => client.get<JsonObject>(appPath(name, app))) };
      });
    },
    'names',
  );
  const show = (schema: string, make: (schema: Schema) => Omit<Form, 'schema'> & Partial<Form>): void => {
    setFault('');
    schemaOf(client, schema).then(
      (found) => setForm({ schema: found, ...make(found) }),
      (error) => setFault(String(error)),
    );
  };
  const newHost = (): void =>
    show('VirtualHostDefinition', (schema) => ({
      title: 'New virtual host',
      value: { ...(beginningOf(schema) as JsonObject), host: { names: ['media.example.com'] } },
      submitLabel: 'Create',
      onSubmit: (value) => client.send('POST', '/v1/vhosts', [value]),
    }));
  const newApp = (vhost: string): void =>
    show('ApplicationDefinition', () => ({
      title: `New application of ${vhost}`,
      value: { name: '', type: 'live', providers: { rtmp: {} }, publishers: { llhls: {}, webrtc: {} }, outputProfiles: PROFILE },
      submitLabel: 'Create',
      onSubmit: (value) => client.send('POST', `/v1/vhosts${at(vhost)}/apps`, [value]),
    }));
  const change = (vhost: string, app: JsonObject): void =>
    show('ApplicationDefinition', (schema) => ({
      title: `Change ${vhost} / ${String(app['name'])}`,
      schema: schemaWithout(schema, FIXED),
      value: without(app, FIXED),
      warning: 'The application restarts: its streams end, and viewers have to come back.',
      submitLabel: 'Change and restart',
      onSubmit: async (value) => {
        const patch = patchOf(without(app, FIXED), value);
        if (patch !== undefined) await client.send('PATCH', appPath(vhost, String(app['name'])), patch);
      },
    }));
  const close = (): void => {
    setForm(null);
    refresh();
  };
  return html`<div class="bar"><h1>Configuration</h1><button type="button" onClick=${newHost}>New virtual host</button><span role="alert" class="bad">${fault}</span></div>
    ${missing === null ? null : html`<p role="alert" class="bad">${missing.message}</p>`}
    ${form === null ? null : html`<${SchemaForm} key=${form.title} ...${form} onClose=${close} />`}
    ${(data ?? []).map(({ name, definition, apps }) => {
      const isReadOnly = server.readOnlyVirtualHosts.includes(name);
      return html`<section key=${name} class="panel host" aria-label=${`Virtual host ${name}`}>
        <div class="bar"><h2>${name}</h2>
          ${
            isReadOnly
              ? html`<span class="badge" title="A configuration file declares it: change the file and restart">read-only</span>`
              : html`<button type="button" onClick=${() => newApp(name)}>New application</button>
            <${Action} label="Delete" about=${name} isDanger question="Delete it with everything in it?" run=${() => client.send('DELETE', `/v1/vhosts${at(name)}`)} onDone=${refresh} />`
          }</div>
        <details><summary>Definition</summary><${JsonView} value=${definition} /></details>
        ${apps.map(
          (app) => html`<details key=${String(app['name'])}><summary>${String(app['name'])} <span class="quiet">application</span></summary>
            ${
              isReadOnly
                ? null
                : html`<div class="bar"><button type="button" onClick=${() => change(name, app)}>Change</button>
              <${Action} label="Delete" about=${`${name}/${String(app['name'])}`} isDanger question="Delete it? Its streams end." run=${() => client.send('DELETE', appPath(name, String(app['name'])))} onDone=${refresh} /></div>`
            }
            <${JsonView} value=${app} />
          </details>`,
        )}
      </section>`;
    })}
    <${Codecs} context=${context} />`;
}

/** Of `GET /v2/internals/codecs`, as far as it is on show. */
export interface CodecModule {
  readonly name: string;
  readonly displayName: string;
  readonly mediaType: string;
  readonly isEncoder: boolean;
  readonly isDecoder: boolean;
  readonly isHwAccel: boolean;
  readonly supportedCodecs: readonly string[];
  readonly metrics: { readonly active: { readonly decoder: number; readonly encoder: number } };
}

/** Asked for when somebody opens it: the answer takes a process. */
function Codecs({ context: { client } }: { readonly context: Context }): View {
  const [modules, setModules] = useState<readonly CodecModule[] | string | null>(null);
  const open = (): void => {
    if (modules !== null) return;
    client.get<CodecModule[]>('/v2/internals/codecs').then(setModules, (error) => setModules(String(error)));
  };
  return html`<details class="panel host" onToggle=${open}><summary>Codecs of this machine</summary>
    ${
      typeof modules === 'string'
        ? html`<p role="alert" class="bad">${modules}</p>`
        : html`<div class="scroll" tabindex="0" role="region" aria-label="Codecs of this machine"><table>
      <thead><tr><th scope="col">Module</th><th scope="col">Kind</th><th scope="col">Does</th><th scope="col">Codecs</th><th scope="col" class="number">At work</th></tr></thead>
      <tbody>${(modules ?? []).map(
        (
          each,
        ) => html`<tr key=${each.name}><th scope="row">${each.displayName}</th><td>${each.mediaType}${each.isHwAccel ? ', hardware' : ''}</td>
        <td>${[each.isDecoder ? 'decodes' : '', each.isEncoder ? 'encodes' : ''].filter((word) => word !== '').join(', ')}</td>
        <td>${each.supportedCodecs.join(', ')}</td><td class="number">${each.metrics.active.decoder + each.metrics.active.encoder}</td></tr>`,
      )}</tbody></table></div>`
    }
  </details>`;
}
