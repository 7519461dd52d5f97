/** Scheduled and multiplex channels of all applications. */
import { useState } from 'preact/hooks';
import type { MillraceClient } from '../client/index.ts';
import { pathWith } from '../client/path.ts';
import { Action } from './action.ts';
import { ChannelTimeline, type ScheduledChannelInformation } from './channel-timeline.ts';
import type { Context } from './context.ts';
import { html, type View } from './html.ts';
import { WriteButton } from './permission.ts';
import { hashOf } from './routes.ts';
import { beginningOf, type Json, type JsonObject, type Schema, schemaOf, without } from './schema-document.ts';
import { SchemaForm } from './schema-form.ts';
import { inTurns, listStreams } from './stream-list.ts';
import { useLive } from './use-live.ts';

type Kind = 'scheduledChannels' | 'multiplexChannels';

/** The displayed members of `GET …/multiplexChannels/{channel}`. */
export interface MultiplexChannelInformation {
  readonly outputStream: { readonly name: string };
  readonly state: string;
  readonly pullingMessage?: string;
  readonly sourceStreams: readonly {
    readonly name: string;
    readonly url: string;
    readonly trackMap: readonly { readonly newTrackName: string }[];
  }[];
}

interface Place {
  readonly vhost: string;
  readonly app: string;
}

interface Found extends Place {
  readonly kind: Kind;
  readonly name: string;
}

interface Form {
  readonly title: string;
  readonly schema: Schema;
  readonly value: JsonObject;
  readonly submitLabel: string;
  readonly onSubmit: (value: JsonObject) => Promise<unknown>;
}

const PAGE_SIZE = 20;
const APP = '/v1/vhosts/{vhost}/apps/{app}';

/** One page of channels at a time; details are requested only for this page. */
export function ChannelsPage({ context }: { readonly context: Context }): View {
  const { client, updates } = context;
  const [form, setForm] = useState<Form | null>(null);
  const [fault, setFault] = useState('');
  const [wanted, setPage] = useState(0);
  const [choice, setChoice] = useState('');
  const { data, refresh } = useLive(
    updates,
    'channels',
    async () => {
      const apps = (await listStreams(client)).filter(({ app }) => app !== '*');
      const found = await inTurns(apps, async ({ vhost, app }) => {
        // An application without channels answers with an error.
        const { providers = {} }: { readonly providers?: object } = await client.get('/v1/vhosts/{vhost}/apps/{app}', {
          path: { vhost, app },
        });
        const list = async (kind: Kind, provider: string): Promise<Found[]> => {
          if (!(provider in providers)) return [];
          const names = await client.get(`${APP}/${kind}`, { path: { vhost, app } });
          return names.map((name) => ({ vhost, app, kind, name }));
        };
        return [...(await list('scheduledChannels', 'schedule')), ...(await list('multiplexChannels', 'multiplex'))];
      });
      return { apps, channels: found.flat() };
    },
    'names',
  );
  const channels = data?.channels ?? [];
  const apps = data?.apps ?? [];
  const pages = Math.max(1, Math.ceil(channels.length / PAGE_SIZE));
  const page = Math.min(wanted, pages - 1);
  const shown = channels.slice(page * PAGE_SIZE, (page + 1) * PAGE_SIZE);
  const chosen = apps.find(({ vhost, app }) => `${vhost}/${app}` === choice) ?? apps[0];
  const details = useLive(updates, shown.map(pathOf).join('\n'), () =>
    inTurns(shown, (each) => definitionOf(client, each).catch(() => null)),
  );
  const show = (schema: string, make: (schema: Schema) => Omit<Form, 'schema'>): void => {
    setFault('');
    schemaOf(client, schema).then(
      (found) => setForm({ ...make(found), schema: found }),
      (error) => setFault(String(error)),
    );
  };
  const create = (kind: Kind, { vhost, app }: Place): void =>
    show(kind === 'scheduledChannels' ? 'ScheduledChannelRequest' : 'MultiplexRequest', (schema) => ({
      title: `New ${kind === 'scheduledChannels' ? 'scheduled' : 'multiplex'} channel in ${vhost} / ${app}`,
      value: kind === 'scheduledChannels' ? scheduleToBegin(schema) : (beginningOf(schema) as JsonObject),
      submitLabel: 'Create',
      onSubmit: (value) => client.request('POST', pathWith(`${APP}/${kind}`, { vhost, app }), { body: value }),
    }));
  const change = (channel: Found, definition: JsonObject): void =>
    show('ScheduledChannelChange', () => ({
      title: `Change ${channel.name}`,
      value: editable(definition),
      submitLabel: 'Change',
      onSubmit: (value) => client.request('PATCH', pathOf(channel), { body: value }),
    }));
  const close = (): void => {
    setForm(null);
    refresh();
  };
  return html`<div class="bar"><h1>Channels</h1>
      <label>In <select value=${chosen === undefined ? '' : `${chosen.vhost}/${chosen.app}`} onChange=${(event: Event) => setChoice((event.target as HTMLSelectElement).value)}>
        ${apps.map(({ vhost, app }) => html`<option key=${`${vhost}/${app}`} value=${`${vhost}/${app}`}>${vhost} / ${app}</option>`)}</select></label>
      <${WriteButton} label="New scheduled channel" isDisabled=${chosen === undefined} onClick=${() => chosen !== undefined && create('scheduledChannels', chosen)} />
      <${WriteButton} label="New multiplex channel" isDisabled=${chosen === undefined} onClick=${() => chosen !== undefined && create('multiplexChannels', chosen)} />
      <span role="alert" class="bad">${fault}</span></div>
    ${form === null ? null : html`<${SchemaForm} key=${form.title} ...${form} onClose=${close} />`}
    ${data !== null && channels.length === 0 ? html`<p class="quiet">There are none.</p>` : null}
    ${shown.map(
      (channel, n) => html`<${ChannelPanel} key=${pathOf(channel)} channel=${channel} definition=${details.data?.[n] ?? null}
      onChange=${change} remove=${() => client.request('DELETE', pathOf(channel))} onDone=${refresh} />`,
    )}
    ${
      pages === 1
        ? null
        : html`<nav class="pager" aria-label="Pages of channels"><button type="button" disabled=${page === 0} onClick=${() => setPage(page - 1)}>Previous</button>
      <span role="status">Page ${page + 1} of ${pages}</span><button type="button" disabled=${page >= pages - 1} onClick=${() => setPage(page + 1)}>Next</button></nav>`
    }`;
}

interface PanelOptions {
  readonly channel: Found;
  /** Null: still loading, or gone. */
  readonly definition: JsonObject | null;
  readonly onChange: (channel: Found, definition: JsonObject) => void;
  readonly remove: () => Promise<unknown>;
  readonly onDone: () => void;
}

function ChannelPanel({ channel, definition, onChange, remove, onDone }: PanelOptions): View {
  const { kind, vhost, app, name } = channel;
  const isScheduled = kind === 'scheduledChannels';
  return html`<section class="panel host" aria-label=${`Channel ${name}`}>
    <div class="bar"><h2><a href=${hashOf({ page: 'stream', vhost, app, stream: name })}>${name}</a></h2>
      <span class="quiet">${vhost} / ${app}, ${isScheduled ? 'scheduled' : 'multiplex'}</span><span class="grow"></span>
      ${isScheduled && definition !== null ? html`<${WriteButton} label="Change" about=${name} onClick=${() => onChange(channel, definition)} />` : null}
      <${Action} label="Delete" about=${name} isDanger question="End the channel?" run=${remove} onDone=${onDone} /></div>
    ${
      definition === null
        ? null
        : isScheduled
          ? html`<${ChannelTimeline} channel=${definition as unknown as ScheduledChannelInformation} />`
          : html`<${Multiplex} channel=${definition as unknown as MultiplexChannelInformation} />`
    }
  </section>`;
}

function Multiplex({ channel: { state, pullingMessage, sourceStreams } }: { readonly channel: MultiplexChannelInformation }): View {
  return html`<p><b>${state}</b> ${pullingMessage ?? ''}</p>
    <ul>${sourceStreams.map(({ name, url, trackMap }) => html`<li key=${name}>${name}: ${url} <span class="quiet">as ${trackMap.map(({ newTrackName }) => newTrackName).join(', ')}</span></li>`)}</ul>`;
}

function pathOf({ vhost, app, kind, name }: Found): string {
  return pathWith(`${APP}/${kind}/{name}`, { vhost, app, name });
}

/** The definition in the form of its schema. */
async function definitionOf(client: MillraceClient, { vhost, app, kind, name }: Found): Promise<JsonObject> {
  const path = { vhost, app, channel: name };
  const found =
    kind === 'scheduledChannels'
      ? client.get(`${APP}/scheduledChannels/{channel}`, { path })
      : client.get(`${APP}/multiplexChannels/{channel}`, { path });
  return (await found) as JsonObject;
}

/** One program that starts now, as an example to edit. */
function scheduleToBegin(schema: Schema): JsonObject {
  const items: Json = [{ url: 'file://film.mp4' }];
  return {
    ...(beginningOf(schema) as JsonObject),
    programs: [{ name: 'program', scheduled: new Date().toISOString().replace(/\.\d+Z$/, 'Z'), repeat: true, items }],
  };
}

/** The changeable members of a definition. */
function editable(definition: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(without(definition, ['currentProgram', 'stream'])).filter(([, value]) => value !== null));
}
