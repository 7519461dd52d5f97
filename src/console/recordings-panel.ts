/** Recordings of a stream: a time bar to play from. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { components } from '../client/index.ts';
import { faultOf } from './api-client.ts';
import type { StreamPart } from './context.ts';
import { bytes, duration, timeOfDay } from './format.ts';
import { html, type View } from './html.ts';
import { playHls } from './play-hls.ts';
import { PlayerPanel } from './player-panel.ts';
import { appOf } from './stream-list.ts';
import { useLive } from './use-live.ts';

const RECORDINGS = '/v2/vhosts/{vhost}/apps/{app}/recordings';
const HOUR_MS = 3_600_000;
const SPANS = [
  [HOUR_MS, 'last hour'],
  [6 * HOUR_MS, 'last 6 hours'],
  [24 * HOUR_MS, 'last day'],
  [7 * 24 * HOUR_MS, 'last week'],
  [365 * 24 * HOUR_MS, 'last year'],
] as const;
const PAGE_SIZE = 20;
type Recording = components['schemas']['RecordedFiles']['recordings'][number];

interface Chosen {
  readonly title: string;
  readonly url: string;
}

/** `outputs`: names of the output streams, which are the recorded ones. */
export function RecordingsPanel({ context, name, outputs }: StreamPart): View {
  const { client, updates } = context;
  const [span, setSpan] = useState<number>(SPANS[2][0]);
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [bounds, setBounds] = useState<{ readonly from: string; readonly to: string }>({ from: '', to: '' });
  const [fault, setFault] = useState('');
  const [output = name.stream] = outputs;
  const key = `recordings ${name.vhost}/${name.app}/${output} ${span}`;
  const list = (from: number | string, to?: string) =>
    client.get(RECORDINGS, { ...appOf(name), query: { stream: output, from: String(from), ...(to !== undefined && { to }) } });
  const { data, fault: missing } = useLive(updates, key, async () => ({ now: Date.now(), ...(await list(Date.now() - span)) }), 'names');
  useEffect(() => setChosen(null), [name.vhost, name.app, name.stream]);
  const files = data?.recordings ?? [];
  const playSpan = async (event: Event): Promise<void> => {
    event.preventDefault();
    setFault('');
    try {
      const [from, to] = [bounds.from, bounds.to].map((text) => (text === '' ? null : new Date(text)));
      const found = await list(from?.getTime() ?? Date.now() - span, to === null || to === undefined ? undefined : to.toISOString());
      if (found.playlist === undefined) setFault('Nothing was recorded between these times.');
      else
        setChosen({
          title: `${from == null ? 'From the beginning' : from.toLocaleString()} to ${to == null ? 'the end' : to.toLocaleString()}`,
          url: urlOf(client.url, found.playlist),
        });
    } catch (error) {
      setFault(faultOf(error).message);
    }
  };
  const bound = (member: 'from' | 'to') =>
    html`<label>${member === 'from' ? 'From' : 'To'} <input type="datetime-local" step="1" value=${bounds[member]} onInput=${(event: InputEvent) => setBounds({ ...bounds, [member]: (event.target as HTMLInputElement).value })} /></label>`;
  if (missing !== null && data === null)
    return html`<section><div class="bar"><h2>Recorded</h2></div><p class="quiet">${missing.message}</p></section>`;
  return html`<section>
    <div class="bar"><h2 id="recorded-title">Recorded</h2>
      <label>Show <select value=${String(span)} onChange=${(event: Event) => setSpan(Number((event.target as HTMLSelectElement).value))}>${SPANS.map(([ms, label]) => html`<option key=${ms} value=${String(ms)}>${label}</option>`)}</select></label>
      ${
        files.length === 0
          ? null
          : html`<form class="inline" onSubmit=${playSpan}>${bound('from')}${bound('to')}<button type="submit">Play span</button><span role="alert" class="bad">${fault}</span></form>`
      }
    </div>
    ${
      data === null
        ? html`<p class="quiet">Loading …</p>`
        : files.length === 0
          ? html`<p class="quiet">No finished recording of ${output} in this time.</p>`
          : html`<${Bar} files=${files} from=${Math.max(data.now - span, Date.parse(files[0]?.startTime ?? ''))} to=${data.now} onPlay=${(file: Recording) => setChosen({ title: titleOf(file), url: urlOf(client.url, file.playlist) })} />
        <${Files} files=${files} base=${client.url} onPlay=${(file: Recording) => setChosen({ title: titleOf(file), url: urlOf(client.url, file.playlist) })} />`
    }
    ${chosen === null ? null : html`<${Playback} chosen=${chosen} onClose=${() => setChosen(null)} />`}
  </section>`;
}

/** Scrolls into view: the clicked button may be far away. */
function Playback({ chosen, onClose }: { readonly chosen: Chosen; readonly onClose: () => void }): View {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => place.current?.scrollIntoView({ block: 'nearest' }), [chosen.url]);
  return html`<div class="playback" ref=${place}><div class="bar"><h3>${chosen.title}</h3><button type="button" onClick=${onClose}>Close</button></div>
    <${PlayerPanel} title="Recording" delayOf="" isOn url=${chosen.url} missing="" play=${playRecorded} /></div>`;
}

/** Plays from the beginning with all controls; a recording has no delay. */
async function playRecorded(...[place, url, listener]: Parameters<typeof playHls>): ReturnType<typeof playHls> {
  const { close } = await playHls(place, url, listener, { isLive: false });
  return { delay: async () => null, close };
}

interface BarOptions {
  readonly files: readonly Recording[];
  readonly from: number;
  readonly to: number;
  readonly onPlay: (file: Recording) => void;
}

function Bar({ files, from, to, onPlay }: BarOptions): View {
  const share = (time: number): number => Math.min(100, Math.max(0, ((time - from) / (to - from)) * 100));
  return html`<div class="spans"><div class="spans-bar">${files.map((file) => {
    const [left, right] = [share(Date.parse(file.startTime)), share(Date.parse(file.endTime))];
    return html`<button type="button" key=${file.id} title=${titleOf(file)} aria-label=${`Play ${titleOf(file)}`} tabindex="-1" style=${{ left: `min(${left}%, 100% - 4px)`, width: `max(4px, ${right - left}%)` }} onClick=${() => onPlay(file)}></button>`;
  })}</div><div class="spans-ends quiet small"><span>${new Date(from).toLocaleString()}</span><span>now</span></div></div>`;
}

function Files({
  files,
  base,
  onPlay,
}: {
  readonly files: readonly Recording[];
  readonly base: string;
  readonly onPlay: (file: Recording) => void;
}): View {
  const [page, setPage] = useState(0);
  const newest = [...files].reverse();
  const pages = Math.ceil(newest.length / PAGE_SIZE);
  const at = Math.min(page, pages - 1);
  return html`<div class="scroll" tabindex="0" role="region" aria-labelledby="recorded-title"><table>
      <thead><tr><th scope="col">Began</th><th scope="col" class="number">Length</th><th scope="col" class="number">Size</th><th scope="col">Task</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
      <tbody>${newest.slice(at * PAGE_SIZE, (at + 1) * PAGE_SIZE).map(
        (
          file,
        ) => html`<tr key=${file.id}><th scope="row">${new Date(file.startTime).toLocaleString()}</th><td class="number" data-label="Length">${duration(file.durationMs)}</td><td class="number" data-label="Size">${bytes(file.bytes)}</td><td data-label="Task">${file.task}</td>
        <td class="number last"><button type="button" aria-label=${`Play ${titleOf(file)}`} onClick=${() => onPlay(file)}>Play</button> <a href=${urlOf(base, file.file)} download>Download</a></td></tr>`,
      )}</tbody></table></div>
    ${pages <= 1 ? null : html`<nav class="pager" aria-label="Pages of recordings"><button type="button" disabled=${at === 0} onClick=${() => setPage(at - 1)}>Previous</button><span role="status">Page ${at + 1} of ${pages}</span><button type="button" disabled=${at >= pages - 1} onClick=${() => setPage(at + 1)}>Next</button></nav>`}`;
}

function titleOf({ startTime, durationMs }: Recording): string {
  return `${new Date(startTime).toLocaleDateString()} ${timeOfDay(Date.parse(startTime))}, ${duration(durationMs)}`;
}

/** A proxy may serve the API below a path. */
function urlOf(base: string, path: string): string {
  return `${base}${path}`;
}
