/** Definitions of virtual hosts and applications, with forms to change them. */
import { useState } from 'preact/hooks';
import { pathWith } from '../client/path.ts';
import { Action, faultWords } from './action.ts';
import { APP, ApplicationPanel, type OpenForm, type Secret, type ShowForm } from './application-panel.ts';
import type { Context } from './context.ts';
import { CopyField } from './copy-field.ts';
import { html, type View } from './html.ts';
import { JsonView } from './json-view.ts';
import { WriteButton } from './permission.ts';
import { beginningOf, type Json, type JsonObject, schemaOf } from './schema-document.ts';
import { SchemaForm } from './schema-form.ts';
import { inTurns } from './stream-list.ts';
import { useLive } from './use-live.ts';

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

/** One section per virtual host, one open form at a time. */
export function ConfigurationPage({ context }: { readonly context: Context }): View {
  const { client, updates, server } = context;
  const [form, setForm] = useState<OpenForm | null>(null);
  const [secret, setSecret] = useState<Secret | null>(null);
  const [fault, setFault] = useState('');
  const {
    data,
    fault: missing,
    refresh,
  } = useLive(
    updates,
    'configuration',
    async (): Promise<Host[]> => {
      const names = await client.get('/v1/vhosts');
      return inTurns(names, async (vhost) => {
        const definition = (await client.get('/v1/vhosts/{vhost}', { path: { vhost } })) as JsonObject;
        const apps = await client.get('/v1/vhosts/{vhost}/apps', { path: { vhost } });
        const described = await inTurns(apps, (app) => client.get(APP, { path: { vhost, app } }) as Promise<JsonObject>);
        return { name: vhost, definition, apps: described };
      });
    },
    'names',
  );
  const show: ShowForm = (schema, make) => {
    setFault('');
    setSecret(null);
    schemaOf(client, schema).then(
      (found) => setForm({ schema: found, ...make(found) }),
      (error) => setFault(faultWords(error)),
    );
  };
  const newHost = (): void =>
    show('VirtualHostDefinition', (schema) => ({
      title: 'New virtual host',
      value: { ...(beginningOf(schema) as JsonObject), host: { names: ['media.example.com'] } },
      submitLabel: 'Create',
      onSubmit: (value) => client.request('POST', '/v1/vhosts', { body: [value] }),
    }));
  const newApp = (vhost: string): void =>
    show('ApplicationDefinition', () => ({
      title: `New application of ${vhost}`,
      value: { name: '', type: 'live', providers: { rtmp: {} }, publishers: { llhls: {}, webrtc: {} }, outputProfiles: PROFILE },
      submitLabel: 'Create',
      onSubmit: (value) => client.request('POST', pathWith('/v1/vhosts/{vhost}/apps', { vhost }), { body: [value] }),
    }));
  const close = (): void => {
    setForm(null);
    refresh();
  };
  return html`<div class="bar"><h1>Configuration</h1><${WriteButton} label="New virtual host" onClick=${newHost} /><span role="alert" class="bad">${fault}</span></div>
    ${missing === null ? null : html`<p role="alert" class="bad">${missing.message}</p>`}
    ${form === null ? null : html`<${SchemaForm} key=${form.title} ...${form} onClose=${close} />`}
    ${secret === null ? null : html`<section class="panel" aria-label="The new key"><p role="status">${secret.about} This is shown once: the server keeps a hash of it.</p><${CopyField} label=${secret.label} text=${secret.text} hasCode /></section>`}
    ${(data ?? []).map(({ name, definition, apps }) => {
      const isReadOnly = server.readOnlyVirtualHosts.includes(name);
      return html`<section key=${name} class="panel host" aria-label=${`Virtual host ${name}`}>
        <div class="bar"><h2>${name}</h2>
          ${
            isReadOnly
              ? html`<span class="badge" title="A configuration file declares it: change the file and reload">read-only</span>`
              : html`<${WriteButton} label="New application" onClick=${() => newApp(name)} />
            <${Action} label="Delete" about=${name} isDanger question="Delete it with everything in it?" run=${() => client.delete('/v1/vhosts/{vhost}', { path: { vhost: name } })} onDone=${refresh} />`
          }</div>
        <details><summary>Definition</summary><${JsonView} value=${definition} /></details>
        ${apps.map((app) => html`<${ApplicationPanel} key=${String(app['name'])} context=${context} vhost=${name} definition=${app} isReadOnly=${isReadOnly} show=${show} onSecret=${setSecret} onDone=${refresh} />`)}
      </section>`;
    })}
    <${Codecs} context=${context} />`;
}

/** The displayed members of `GET /v2/internals/codecs`. */
export interface CodecInformation {
  readonly name: string;
  readonly displayName: string;
  readonly mediaType: string;
  readonly isEncoder: boolean;
  readonly isDecoder: boolean;
  readonly isHwAccel: boolean;
  readonly supportedCodecs: readonly string[];
  readonly metrics: { readonly active: { readonly decoder: number; readonly encoder: number } };
}

/** Requested only when opened: the server starts a process for the answer. */
function Codecs({ context: { client } }: { readonly context: Context }): View {
  const [modules, setModules] = useState<readonly CodecInformation[] | string | null>(null);
  const open = (): void => {
    if (modules !== null) return;
    client.get('/v2/internals/codecs').then(setModules, (error) => setModules(String(error)));
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
        ) => html`<tr key=${each.name}><th scope="row">${each.displayName}</th><td data-label="Kind">${each.mediaType}${each.isHwAccel ? ', hardware' : ''}</td>
        <td data-label="Does">${[each.isDecoder ? 'decodes' : '', each.isEncoder ? 'encodes' : ''].filter((word) => word !== '').join(', ')}</td>
        <td data-label="Codecs">${each.supportedCodecs.join(', ')}</td><td class="number" data-label="At work">${each.metrics.active.decoder + each.metrics.active.encoder}</td></tr>`,
      )}</tbody></table></div>`
    }
  </details>`;
}
