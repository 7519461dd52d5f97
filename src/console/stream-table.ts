/** Virtual hosts, applications and streams in one table with pages. */
import { useMemo, useState } from 'preact/hooks';
import { protocolName, viewersOf } from '../client/index.ts';
import type { Context } from './context.ts';
import { counted, duration, formatBitrate } from './format.ts';
import { html, type View } from './html.ts';
import { hashOf } from './routes.ts';
import type { StreamInformation, TrackInformation } from './server-facts.ts';
import { type AppStreams, figuresOf, listStreams, type StreamName, type StreamRow } from './stream-list.ts';
import { useLive } from './use-live.ts';

const PAGE_SIZE = 25;
const NEVER: readonly AppStreams[] = [];

/** Figures are requested only for the displayed streams. */
export function StreamTable({ context }: { readonly context: Context }): View {
  const { client, updates } = context;
  const [filter, setFilter] = useState('');
  const [wanted, setPage] = useState(0);
  const { data, fault } = useLive(updates, 'streams', () => listStreams(client), 'names');
  const apps = data ?? NEVER;
  const all = useMemo(() => matching(apps, filter), [apps, filter]);
  const pages = Math.max(1, Math.ceil(all.length / PAGE_SIZE));
  const page = Math.min(wanted, pages - 1);
  const shown = all.slice(page * PAGE_SIZE, (page + 1) * PAGE_SIZE);
  const key = shown.map(({ vhost, app, stream }) => `${vhost}/${app}/${stream}`).join('\n');
  const { data: rows } = useLive(updates, key, () => figuresOf(client, shown));
  const total = apps.reduce((sum, { streams }) => sum + streams.length, 0);
  return html`<section>
    <div class="bar">
      <h2 id="streams-title">Streams</h2>
      <span class="quiet">${data === null ? '' : `${counted(total, 'stream')} in ${counted(apps.length, 'application')}`}</span>
      <input type="search" placeholder="Filter" aria-label="Filter streams by name" value=${filter}
        onInput=${(event: InputEvent) => {
          setFilter((event.target as HTMLInputElement).value);
          setPage(0);
        }} />
    </div>
    ${fault === null ? null : html`<p role="alert" class="bad">The streams cannot be listed: ${fault.message}</p>`}
    <div class="scroll" tabindex="0" role="region" aria-labelledby="streams-title">
      <table>
        <thead><tr><th scope="col">Stream</th><th scope="col" class="roomy">Source</th><th scope="col" class="roomy">Video</th><th scope="col" class="roomy">Audio</th>
          <th scope="col" class="number">In</th><th scope="col" class="number">Out</th><th scope="col" class="number">Viewers</th><th scope="col" class="number roomy">Since</th></tr></thead>
        ${bodies(apps, shown, rows ?? [], filter)}
      </table>
    </div>
    ${pages === 1 ? null : html`<${Pager} page=${page} pages=${pages} onPage=${setPage} />`}
  </section>`;
}

function matching(apps: readonly AppStreams[], filter: string): StreamName[] {
  const text = filter.trim().toLowerCase();
  return apps
    .flatMap(({ vhost, app, streams }) => streams.map((stream) => ({ vhost, app, stream })))
    .filter(({ vhost, app, stream }) => text === '' || `${vhost}/${app}/${stream}`.toLowerCase().includes(text));
}

/** One group for each application with displayed streams; without a filter also for applications without streams. */
function bodies(apps: readonly AppStreams[], shown: readonly StreamName[], rows: readonly StreamRow[], filter: string): View[] {
  const known = new Map(rows.map((row) => [keyOf(row), row]));
  return apps.flatMap(({ vhost, app, streams }) => {
    const own = shown.filter((name) => name.vhost === vhost && name.app === app);
    if (own.length === 0 && (streams.length > 0 || filter.trim() !== '')) return [];
    const lines =
      own.length === 0
        ? html`<tr><td colspan="8" class="quiet">No streams</td></tr>`
        : own.map((name) => html`<${Row} key=${keyOf(name)} name=${name} row=${known.get(keyOf(name))} />`);
    return [
      html`<tbody key=${`${vhost}/${app}`}>
        <tr class="group"><th scope="rowgroup" colspan="8">${vhost} <span class="quiet">/</span> ${app} <span class="quiet">${counted(streams.length, 'stream')}</span></th></tr>
        ${lines}
      </tbody>`,
    ];
  });
}

function Row({ name, row }: { readonly name: StreamName; readonly row: StreamRow | undefined }): View {
  const { information = null, statistics = null } = row ?? {};
  const tracks = information?.input.tracks ?? [];
  const cell = (value: string | undefined): string => (row === undefined ? '' : (value ?? '–'));
  return html`<tr>
    <th scope="row"><a href=${hashOf({ page: 'stream', ...name })}>${name.stream}</a></th>
    <td class="roomy" data-label="Source">${cell(information === null ? undefined : protocolName(information.input.sourceType))}</td>
    <td class="roomy" data-label="Video">${cell(videoWords(tracks))}</td>
    <td class="roomy" data-label="Audio">${cell(audioWords(tracks))}</td>
    <td class="number" data-label="In">${cell(statistics === null ? undefined : formatBitrate(statistics.avgThroughputIn))}</td>
    <td class="number" data-label="Out">${cell(statistics === null ? undefined : formatBitrate(statistics.avgThroughputOut))}</td>
    <td class="number" data-label="Viewers">${cell(statistics === null ? undefined : String(viewersOf(statistics.connections)))}</td>
    <td class="number roomy" data-label="Since">${cell(sinceWords(information))}</td>
  </tr>`;
}

function Pager({ page, pages, onPage }: { readonly page: number; readonly pages: number; readonly onPage: (page: number) => void }): View {
  return html`<nav class="pager" aria-label="Pages of streams">
    <button type="button" disabled=${page === 0} onClick=${() => onPage(page - 1)}>Previous</button>
    <span role="status">Page ${page + 1} of ${pages}</span>
    <button type="button" disabled=${page >= pages - 1} onClick=${() => onPage(page + 1)}>Next</button>
  </nav>`;
}

function keyOf({ vhost, app, stream }: StreamName): string {
  return `${vhost}/${app}/${stream}`;
}

function videoWords(tracks: readonly TrackInformation[]): string | undefined {
  const video = tracks.find((track) => track.video !== undefined)?.video;
  return video && `${video.codec} ${video.width}×${video.height} ${Math.round(video.framerateLatest)} fps`;
}

function audioWords(tracks: readonly TrackInformation[]): string | undefined {
  const audio = tracks.find((track) => track.audio !== undefined)?.audio;
  return audio && `${audio.codec} ${audio.samplerate / 1000} kHz`;
}

function sinceWords(information: StreamInformation | null): string | undefined {
  return information === null ? undefined : duration(Date.now() - Date.parse(information.input.createdTime));
}
