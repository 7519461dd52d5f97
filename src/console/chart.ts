/** A chart of some figures of the history, in the colours of the page. */
import { useEffect, useRef } from 'preact/hooks';
import UPlot from 'uplot';
import type { History } from './history.ts';
import { html, type View } from './html.ts';

/** One line of a chart. */
export interface Line<Name extends string> {
  readonly figure: Name;
  readonly label: string;
  /** A custom property of the style sheet. */
  readonly colour: string;
}

/** Contents of a chart; `format` is for the axis and for the newest values. */
export interface ChartOptions<Name extends string> {
  readonly title: string;
  readonly history: History<Name>;
  readonly lines: readonly Line<Name>[];
  readonly format: (value: number) => string;
  /** Changes with every sample. */
  readonly tick: number;
}

const HEIGHT = 120;
/** Minimum time span of a chart, seconds. */
const MIN_SECONDS = 300;
const MAX_SECONDS = 3600;
const AXIS = 62;

/** Title, newest values and the chart. */
export function Chart<Name extends string>({ title, history, lines, format, tick }: ChartOptions<Name>): View {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const draw = (): void => {
      plot.current?.destroy();
      plot.current = new UPlot(optionsOf(element, lines, format), dataOf(history, lines), element);
    };
    draw();
    const sizes = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    sizes.observe(element);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', draw);
    return () => {
      sizes.disconnect();
      scheme.removeEventListener('change', draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [history]);
  useEffect(() => plot.current?.setData(dataOf(history, lines)), [tick]);
  const newest = lines.map(({ figure, label, colour }) => {
    const value = history.last(figure);
    return html`<li key=${figure}><i class="swatch" style=${{ background: `var(${colour})` }}></i>${label} <b>${value === null ? '–' : format(value)}</b></li>`;
  });
  return html`<figure class="chart">
    <figcaption>${title}<ul class="legend">${newest}</ul></figcaption>
    <div ref=${place} class="plot" role="img" aria-label=${`${title} over time`}></div>
  </figure>`;
}

function dataOf<Name extends string>(history: History<Name>, lines: readonly Line<Name>[]): UPlot.AlignedData {
  return [history.times(), ...lines.map(({ figure }) => history.column(figure))];
}

function optionsOf<Name extends string>(
  element: HTMLElement,
  lines: readonly Line<Name>[],
  format: (value: number) => string,
): UPlot.Options {
  const colour = (name: string): string => colourOf(element, name);
  const axis = { stroke: colour('--quiet'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui' };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { range: (_plot, min, max) => rangeOf(min, max) },
      y: { range: (_plot, _min, max) => [0, Math.max(max ?? 0, Number.MIN_VALUE) * 1.1 || 1] },
    },
    axes: [
      {
        ...axis,
        size: 24,
        space: 70,
        values: (_plot, splits) => splits.map((at) => new Date(at * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })),
      },
      { ...axis, size: AXIS, space: 30, values: (_plot, splits) => splits.map(format) },
    ],
    series: [{}, ...lines.map(({ colour: name }) => ({ stroke: colour(name), width: 1.5, points: { show: false }, spanGaps: true }))],
  };
}

function rangeOf(min: number | null, max: number | null): [number, number] {
  const end = max ?? Date.now() / 1000;
  const span = end - (min ?? end);
  return [end - Math.min(Math.max(span, MIN_SECONDS), MAX_SECONDS), end];
}

/** The colour of a custom property: dark and light variants are resolved only where a colour is applied. */
function colourOf(element: HTMLElement, name: string): string {
  element.style.color = `var(${name})`;
  const { color } = getComputedStyle(element);
  element.style.color = '';
  return color;
}
