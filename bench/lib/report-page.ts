/** An HTML page about all kept reports: the newest value of each figure with its target and yardstick, and its values over the runs. */
import type { KeptBench, KeptRuns, KeptValue, Series } from './kept-runs.ts';
import { meetsTarget, targetText } from './report.ts';

const PLOT = { width: 300, height: 72, left: 44, right: 8, top: 8, bottom: 8 };
const BAR = { width: 120, height: 10, target: 90 };
/** Values of at least this share of the target fill the bar. */
const MAX_SHARE = BAR.width / BAR.target;

const STYLE = `
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --text: #1b2230; --quiet: #5a6475; --line: #d9dee7; --value: #1f6feb; --yardstick: #8a94a6; --bad: #c4281c; --good: #1a7f37 }
@media (prefers-color-scheme: dark) {
  :root { --page: #0f1319; --card: #171c24; --text: #e6eaf1; --quiet: #9aa5b5; --line: #2b3340; --value: #6ea8fe; --yardstick: #77839a; --bad: #ff7b72; --good: #56d364 }
}
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 75rem; padding: 1.5rem 1rem 3rem; background: var(--page); color: var(--text); font: 15px/1.45 system-ui, sans-serif }
h1 { margin: 0 0 .25rem; font-size: 1.5rem }
h2 { margin: 2rem 0 .5rem; font-size: 1.15rem }
p { margin: .25rem 0 }
a { color: var(--value) }
.quiet { color: var(--quiet); font-size: .85rem }
.key span { margin-right: 1rem; white-space: nowrap }
.key svg { vertical-align: middle }
.figure { display: grid; grid-template-columns: minmax(0, 1fr) 9rem 9.5rem 19rem; gap: .25rem 1rem; align-items: center; padding: .5rem .75rem; background: var(--card); border: 1px solid var(--line); border-bottom-width: 0 }
.figure:first-of-type { border-radius: 6px 6px 0 0 }
.figure:last-of-type { border-bottom-width: 1px; border-radius: 0 0 6px 6px }
.figure:target { outline: 2px solid var(--value) }
.name { overflow-wrap: anywhere }
.number { font-variant-numeric: tabular-nums; text-align: right }
.number b { font-size: 1.1rem }
.bad { color: var(--bad) }
.good { color: var(--good) }
svg { display: block; max-width: 100%; height: auto }
svg text { fill: var(--quiet); font: 10px system-ui, sans-serif }
ul { margin: .25rem 0; padding-left: 1.25rem }
@media (max-width: 60rem) {
  .figure { grid-template-columns: minmax(0, 1fr) auto }
  .name, .plot { grid-column: 1 / -1 }
  .number { text-align: left }
}
`;

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

/** Three significant digits; large numbers are rounded to integers. */
function short(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

/** The value that just meets the target; null without a target. */
function limitOf({ target, baseline }: KeptValue): number | null {
  return target === undefined ? null : target * (baseline ?? 1);
}

function dayOf(takenAt: string): string {
  return takenAt.slice(0, 16).replace('T', ' ');
}

function idOf(bench: string, index: number): string {
  return `${bench}-${index}`;
}

/** The used part of the target as a bar. */
function bar(value: KeptValue): string {
  const limit = limitOf(value);
  if (limit === null || limit <= 0) return '';
  const share = Math.min(MAX_SHARE, Math.max(0, value.value / limit));
  const { width, height, target } = BAR;
  const colour = meetsTarget(value) ? 'var(--good)' : 'var(--bad)';
  return `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${Math.round((100 * value.value) / limit)} % of the target">
<rect y="2" width="${width}" height="${height - 4}" fill="var(--line)"/><rect y="2" width="${(share * target).toFixed(1)}" height="${height - 4}" fill="${colour}"/>
<path d="M${target} 0V${height}" stroke="var(--text)" stroke-width="2"/></svg>`;
}

/** All values of a figure with its yardstick and target. Runs are equally spaced, because benches run after changes. */
function plot({ name, values }: Series): string {
  const { width, height, left, right, top, bottom } = PLOT;
  const told = values.flatMap((value) => [value.value, value.baseline, limitOf(value)]).filter((one) => one !== undefined && one !== null);
  const low = Math.min(0, ...told);
  const most = Math.max(0, ...told);
  const high = most > low ? most : low + 1;
  const x = (n: number): string => (left + ((width - left - right) * (n + 0.5)) / values.length).toFixed(1);
  const y = (value: number): string => (height - bottom - ((height - top - bottom) * (value - low)) / (high - low)).toFixed(1);
  const line = (of: (value: KeptValue) => number | null | undefined, look: string): string => {
    let path = '';
    for (const [n, value] of values.entries()) {
      const one = of(value);
      if (one === undefined || one === null) continue;
      path += `${path === '' ? 'M' : 'L'}${x(n)} ${y(one)}`;
    }
    // A single value becomes a short line, because a point would be invisible.
    if (path !== '' && !path.includes('L')) path += 'm-6 0h12';
    return path === '' ? '' : `<path d="${path}" fill="none" ${look}/>`;
  };
  const points = values.map((value, n) => {
    const yardstick = value.baseline === undefined ? '' : `, yardstick ${short(value.baseline)}`;
    const title = `${dayOf(value.takenAt)}: ${short(value.value)} ${value.unit}${yardstick}, load ${value.load.toFixed(1)}`;
    const colour = meetsTarget(value) ? 'var(--value)' : 'var(--bad)';
    return `<circle cx="${x(n)}" cy="${y(value.value)}" r="3" fill="${colour}"><title>${escaped(title)}</title></circle>`;
  });
  return `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(name)} over ${values.length} runs">
<path d="M${left} ${y(low)}H${width - right}M${left} ${y(high)}H${width - right}" stroke="var(--line)"/>
<text x="${left - 4}" y="${Number(y(high)) + 4}" text-anchor="end">${short(high)}</text><text x="${left - 4}" y="${Number(y(low)) + 3}" text-anchor="end">${short(low)}</text>
${line(limitOf, 'stroke="var(--bad)" stroke-dasharray="4 3"')}${line(({ baseline }) => baseline, 'stroke="var(--yardstick)"')}${line(({ value }) => value, 'stroke="var(--value)" stroke-width="1.5"')}
${points.join('')}</svg>`;
}

function figure(bench: string, series: Series, index: number): string {
  const value = series.values.at(-1) ?? series.values[0];
  const { baseline, least, target } = value;
  const ratio = baseline === undefined ? '' : `${(value.value / baseline).toFixed(2)} times ${short(baseline)}`;
  const limit =
    target === undefined ? '' : `target ${least === undefined ? target : targetText(value)}${baseline === undefined ? '' : ' times'}`;
  const verdict = target === undefined ? '' : meetsTarget(value) ? '<b class="good">met</b>' : '<b class="bad">missed</b>';
  const aside = [value.remark ?? '', `${dayOf(value.takenAt)}, load ${value.load.toFixed(1)}`].filter((text) => text !== '').map(escaped);
  return `<div class="figure" id="${escaped(idOf(bench, index))}">
<div class="name">${escaped(series.name)}<p class="quiet">${aside.join('<br>')}</p></div>
<div class="number"><b>${short(value.value)}</b> ${escaped(value.unit)}<p class="quiet">${ratio}</p></div>
<div>${bar(value)}<p class="quiet">${limit} ${verdict}</p></div>
<div class="plot">${plot(series)}</div>
</div>`;
}

function section({ bench, series, notes }: KeptBench): string {
  const list = notes.map((note) => `<li>${escaped(note)}</li>`).join('');
  return `<section><h2 id="${escaped(bench)}">${escaped(bench)}</h2>
${series.map((one, index) => figure(bench, one, index)).join('\n')}
<ul class="quiet">${list}</ul></section>`;
}

/** Links to all figures whose newest value misses its target. */
function missed(benches: readonly KeptBench[]): { readonly links: readonly string[]; readonly judged: number } {
  const links: string[] = [];
  let judged = 0;
  for (const { bench, series } of benches) {
    for (const [index, { name, values }] of series.entries()) {
      const value = values.at(-1) ?? values[0];
      if (value.target === undefined) continue;
      judged += 1;
      if (!meetsTarget(value)) links.push(`<li><a href="#${escaped(idOf(bench, index))}">${escaped(`${bench}: ${name}`)}</a></li>`);
    }
  }
  return { links, judged };
}

/** The page, without external files. */
export function reportPage({ benches, unreadable }: KeptRuns): string {
  const { links, judged } = missed(benches);
  const machines = [...new Set(benches.flatMap(({ series }) => series.flatMap(({ values }) => values.map(({ machine }) => machine))))];
  const judgement = links.length === 0 ? `All ${judged} targets are met.` : `Of ${judged} targets ${links.length} are missed:`;
  const summary = benches.length === 0 ? 'No bench has been run yet.' : judgement;
  const left = unreadable.length === 0 ? '' : `<p class="bad">Left out: ${escaped(unreadable.join('; '))}</p>`;
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Millrace: benches</title><style>${STYLE}</style></head>
<body>
<h1>Millrace: benches</h1>
<p class="quiet">${escaped(machines.join('; '))}. Each figure shows its newest run; a run on a busy machine says less, its load stands beside it.</p>
<p class="quiet key"><span><svg width="24" height="8" style="display:inline"><path d="M0 4H24" stroke="var(--value)" stroke-width="2"/></svg> measured</span><span><svg width="24" height="8" style="display:inline"><path d="M0 4H24" stroke="var(--yardstick)" stroke-width="2"/></svg> yardstick in the same run</span><span><svg width="24" height="8" style="display:inline"><path d="M0 4H24" stroke="var(--bad)" stroke-width="2" stroke-dasharray="4 3"/></svg> most that meets the target</span></p>
<p>${summary}</p>
<ul>${links.join('')}</ul>
${left}
${benches.map(section).join('\n')}
</body>
</html>
`;
}
