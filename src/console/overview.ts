/** The first page: the state of the server, and its streams. */
import { useEffect, useState } from 'preact/hooks';
import { protocolName, VIEWER_KINDS } from '../client/index.ts';
import { Chart, type Line } from './chart.ts';
import type { Context } from './context.ts';
import { bytes, formatBitrate, short, timeOfDay } from './format.ts';
import { html, type View } from './html.ts';
import { useNarrow } from './narrow.ts';
import type { Figure, Sampler } from './sampler.ts';
import { StreamTable } from './stream-table.ts';

const THROUGHPUT: readonly Line<Figure>[] = [
  { figure: 'in', label: 'In', colour: '--first' },
  { figure: 'out', label: 'Out', colour: '--second' },
];
const COLOURS = ['--first', '--second', '--third', '--fourth'];
const VIEWERS: readonly Line<Figure>[] = VIEWER_KINDS.map((figure, n) => ({
  figure,
  label: protocolName(figure),
  colour: COLOURS[n] ?? '--first',
}));
const CPU: readonly Line<Figure>[] = [
  { figure: 'cpu', label: 'of a core', colour: '--first' },
  { figure: 'loop', label: 'event loop', colour: '--second' },
];
const DELAY: readonly Line<Figure>[] = [{ figure: 'delay', label: 'p99', colour: '--third' }];
const MEMORY: readonly Line<Figure>[] = [{ figure: 'memory', label: 'resident', colour: '--second' }];
/** Figures of the process in `/metrics`. */
const PROCESS = [
  { title: 'CPU', lines: CPU, format: percent },
  { title: 'Event loop delay', lines: DELAY, format: milliseconds },
  { title: 'Memory', lines: MEMORY, format: bytes },
] as const;
const MAX_SHOWN_NOTES = 8;

/** Charts, notes, streams. */
export function Overview({ context }: { readonly context: Context }): View {
  const { sampler } = context;
  const [tick, setTick] = useState(0);
  useEffect(() => sampler.follow(() => setTick((before) => before + 1)), [sampler]);
  // A missing metric would leave an empty chart.
  const told = PROCESS.filter(({ lines: [line] }) => line !== undefined && sampler.history.knows(line.figure));
  const untold = sampler.history.size === 0 ? [] : PROCESS.filter((each) => !told.includes(each));
  const shared = { history: sampler.history, tick };
  const isNarrow = useNarrow();
  const notes = html`<${Notes} key="notes" sampler=${sampler} />`;
  const streams = html`<${StreamTable} key="streams" context=${context} />`;
  return html`<h1>Overview</h1>
    ${isNarrow ? streams : null}
    <section class="charts" aria-label="The last hour">
      ${isNarrow ? notes : null}
      <${Chart} title="Throughput" lines=${THROUGHPUT} format=${formatBitrate} ...${shared} />
      <${Chart} title="Viewers" lines=${VIEWERS} format=${count} ...${shared} />
      ${told.map(({ title, lines, format }) => html`<${Chart} key=${title} title=${title} lines=${lines} format=${format} ...${shared} />`)}
      ${isNarrow ? null : notes}
    </section>
    <p class="quiet small">The delay of the event loop is measured while a console is open; everything else covers the last hour.${untoldWords(untold)}</p>
    ${isNarrow ? null : streams}`;
}

function Notes({ sampler }: { readonly sampler: Sampler }): View {
  const { notes } = sampler;
  const items = notes
    .slice(0, MAX_SHOWN_NOTES)
    .map(
      ({ at, text, level, times = 1 }, n) =>
        html`<li key=${`${at} ${n}`} class=${level}><time>${timeOfDay(at)}</time> ${text}${times === 1 ? '' : ` (${times} times)`}</li>`,
    );
  const more = notes.length > MAX_SHOWN_NOTES ? html`<li class="quiet">and ${notes.length - MAX_SHOWN_NOTES} older</li>` : null;
  return html`<section class="notes" aria-labelledby="notes-title">
    <h2 id="notes-title">Refusals and alerts</h2>
    ${notes.length === 0 ? html`<p class="quiet">None.</p>` : html`<div role="log" tabindex="0" aria-labelledby="notes-title"><ol>${items}${more}</ol></div>`}
  </section>`;
}

function untoldWords(untold: readonly { readonly title: string }[]): string {
  if (untold.length === 0) return '';
  return ` Not in its /metrics: ${untold.map(({ title }) => title).join(', ')}.`;
}

function count(value: number): string {
  return short(value);
}

function percent(value: number): string {
  return `${short(value)} %`;
}

function milliseconds(value: number): string {
  return `${short(value)} ms`;
}
