/** Everything about one stream: players, tracks, viewers, and actions. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { protocolName, VIEWER_KINDS, viewersOf } from '../client/index.ts';
import { Action } from './action.ts';
import { Chart } from './chart.ts';
import type { Context } from './context.ts';
import { duration, formatBitrate, short } from './format.ts';
import { html, type View } from './html.ts';
import { playHls } from './play-hls.ts';
import { playWebrtc } from './play-webrtc.ts';
import { PlayerPanel } from './player-panel.ts';
import { QueueTable } from './queue-table.ts';
import { RecordingsPanel } from './recordings-panel.ts';
import { originOf, type ServerFacts, type Statistics, type StreamInformation } from './server-facts.ts';
import { SessionTable } from './session-table.ts';
import { of, STATISTICS, STREAM, type StreamName } from './stream-list.ts';
import { StreamSamples } from './stream-samples.ts';
import { TaskPanel } from './task-panel.ts';
import { TrackTable } from './track-table.ts';
import { useLive } from './use-live.ts';

const RATES = [
  { figure: 'in', label: 'In', colour: '--first' },
  { figure: 'out', label: 'Out', colour: '--second' },
] as const;
const FRAMES = [{ figure: 'frames', label: 'per second', colour: '--third' }] as const;
const GOP = [{ figure: 'gop', label: 'frames', colour: '--fourth' }] as const;
const VIEWERS = [{ figure: 'viewers', label: 'now', colour: '--first' }] as const;

/** The stream `name` may end at any time. */
export function StreamPage({ context, name }: { readonly context: Context; readonly name: StreamName }): View {
  const { client, updates, server } = context;
  const key = `${name.vhost}/${name.app}/${name.stream}`;
  const [isPlaying, setPlaying] = useState(false);
  const samples = useMemo(() => new StreamSamples(), [key]);
  const [recalled, setRecalled] = useState<StreamSamples | null>(null);
  const { data, fault } = useLive(updates, key, async () => {
    const [information, statistics] = await Promise.all([client.get(STREAM, of(name)), client.get(STATISTICS, of(name))]);
    const at = Date.now();
    samples.add(at, information, statistics, viewersOf(statistics.connections));
    return { information, statistics, at };
  });
  useEffect(() => setPlaying(false), [key]);
  useEffect(() => void samples.recall(client, name).then(() => setRecalled(samples)), [samples]);
  const title = html`<h1><span class="quiet">${name.vhost} / ${name.app} / </span>${name.stream}</h1>`;
  if (data === null) {
    return html`${title}<p role="status">${fault === null ? 'Loading …' : `The server says: ${fault.message}`}</p><p><a href="#/">All streams</a></p>`;
  }
  const { information, statistics, at } = data;
  const addresses = addressesOf(server, name, information);
  const charts = { history: samples.history, tick: recalled === samples ? at : -at };
  const outputs = information.outputs.map((output) => output.name);
  return html`<div class="bar">${title}
      <span class="grow"></span>
      <button type="button" class="main" aria-pressed=${isPlaying} onClick=${() => setPlaying(!isPlaying)}>${isPlaying ? 'Stop players' : 'Play'}</button>
      <${Action} label="Delete stream" isDanger question="End the stream for its publisher and all viewers?"
        run=${() => client.delete(STREAM, of(name))} onDone=${() => location.assign('#/')} />
    </div>
    ${fault === null ? null : html`<p role="alert" class="bad">${fault.status === 404 ? 'The stream has ended.' : fault.message} This is the last known state.</p>`}
    ${warningsOf(information).map((warning) => html`<p key=${warning} class="warning">${warning}</p>`)}
    <div class="players">
      <${PlayerPanel} title="WebRTC" delayOf="of network and buffer" isOn=${isPlaying} play=${playWebrtc} url=${addresses.webrtc} missing="WebRTC does not listen, or the application does not serve it." />
      <${PlayerPanel} title="LL-HLS" delayOf="behind live" isOn=${isPlaying} play=${playHls} url=${addresses.hls} missing="LL-HLS does not listen, or the application does not serve it." />
      <section class="panel facts" aria-label="The stream">
        <h2>Stream</h2>
        <${Facts} information=${information} statistics=${statistics} />
        ${addresses.thumbnail === null ? null : html`<${Thumbnail} url=${addresses.thumbnail} tick=${at} />`}
      </section>
    </div>
    <div class="charts narrow">
      <${Chart} title="Throughput" lines=${RATES} format=${formatBitrate} ...${charts} />
      <${Chart} title="Frames" lines=${FRAMES} format=${short} ...${charts} />
      <${Chart} title="Between keyframes" lines=${GOP} format=${short} ...${charts} />
      <${Chart} title="Viewers" lines=${VIEWERS} format=${short} ...${charts} />
    </div>
    <${TrackTable} information=${information} />
    <${SessionTable} context=${context} name=${name} />
    <${TaskPanel} context=${context} name=${name} outputs=${outputs} />
    <${RecordingsPanel} context=${context} name=${name} outputs=${outputs} />
    <${QueueTable} context=${context} name=${name} outputs=${outputs} />`;
}

function Facts({ information, statistics }: { readonly information: StreamInformation; readonly statistics: Statistics }): View {
  const { input } = information;
  const viewers = VIEWER_KINDS.map((kind) => `${statistics.connections[kind] ?? 0} ${protocolName(kind)}`);
  const rows: readonly (readonly [string, string])[] = [
    ['Source', protocolName(input.sourceType)],
    ['From', input.sourceUrl ?? '–'],
    ['Since', duration(Date.now() - Date.parse(input.createdTime))],
    ['In', formatBitrate(statistics.avgThroughputIn)],
    ['Out', formatBitrate(statistics.avgThroughputOut)],
    ['Viewers', viewers.join(', ')],
    ['Most viewers', String(statistics.maxTotalConnections)],
  ];
  return html`<dl>${rows.map(([term, value]) => html`<dt key=${term}>${term}</dt><dd>${value}</dd>`)}</dl>`;
}

/** Reloaded at every fifth tick, and only if the application makes thumbnails. */
function Thumbnail({ url, tick }: { readonly url: string; readonly tick: number }): View {
  const [isThere, setThere] = useState(true);
  const round = Math.floor(tick / 10_000);
  if (!isThere) return html`<p class="quiet small">No thumbnail: the output profile makes no image.</p>`;
  return html`<img class="thumbnail" alt="Thumbnail of the stream" src=${`${url}?t=${round}`} onError=${() => setThere(false)} />`;
}

function warningsOf({ outputs }: StreamInformation): string[] {
  return outputs.flatMap(({ name, warnings = [] }) => warnings.map((warning) => `${name}: ${warning}`));
}

/** URLs of the first output. */
function addressesOf({ publishers }: ServerFacts, { app }: StreamName, { outputs }: StreamInformation) {
  const [output] = outputs;
  const of = (origin: string | null, file: string): string | null =>
    origin === null || output === undefined ? null : `${origin}/${encodeURIComponent(app)}/${encodeURIComponent(output.name)}${file}`;
  const playlist = output?.playlists.find(({ options, name }) => options.enableTsPackaging !== true && !name.startsWith('webrtc'));
  const images = output?.tracks.find(({ video }) => video?.codec === 'JPEG' || video?.codec === 'PNG' || video?.codec === 'WEBP')?.video
    ?.codec;
  const ending = images === undefined ? null : images === 'JPEG' ? 'jpg' : images.toLowerCase();
  const hasWebrtc = output?.playlists.some(({ name }) => name.startsWith('webrtc')) === true;
  return {
    webrtc: hasWebrtc ? of(originOf(publishers.webrtc, ['ws', 'wss']), '') : null,
    hls: playlist === undefined ? null : of(originOf(publishers.llhls), `/${encodeURIComponent(playlist.fileName)}.m3u8`),
    thumbnail: ending === null ? null : of(originOf(publishers.thumbnail), `/thumb.${ending}`),
  };
}
