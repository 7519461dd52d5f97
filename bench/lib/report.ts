/** Results of a bench: printed as a table, kept as JSON. */
import { mkdirSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** A measured figure, with its yardstick. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** The value of the yardstick program in the same run. */
  readonly baseline?: number;
  /** Largest good value, or ratio if there is a baseline. */
  readonly target?: number;
  /** Smallest good value, or ratio, where too small a value means that the measurement is wrong. Needs a `target`. */
  readonly least?: number;
  /** A note needed to interpret the value. */
  readonly remark?: string;
}

export interface Report {
  readonly bench: string;
  readonly figures: readonly Figure[];
  /** Facts a reader needs to judge the figures. */
  readonly notes: readonly string[];
}

export interface BenchOptions {
  /** Seconds of each measurement. */
  readonly seconds: number;
  /** Repetitions; the median counts. */
  readonly rounds: number;
}

/** Folder of generated sources and results; git ignores it. */
export const RESULTS_FOLDER = path.resolve(import.meta.dirname, '../results');

/** The value that `target` judges: the ratio to the baseline, or the value itself without one. */
function judged(figure: Figure): number {
  return figure.baseline === undefined ? figure.value : figure.value / figure.baseline;
}

/** Whether a figure meets its target; true without a target. */
export function meetsTarget(figure: Figure): boolean {
  return figure.target === undefined || (judged(figure) <= figure.target && judged(figure) >= (figure.least ?? Number.NEGATIVE_INFINITY));
}

/** The target in words; '' without one. */
export function targetText({ target, least }: Figure): string {
  if (target === undefined) return '';
  return least === undefined ? `<= ${target}` : `${least} to ${target}`;
}

/** Index of the column with remarks. */
const REMARK = 7;

function row(figure: Figure): string[] {
  const ratio = figure.baseline === undefined ? '' : `${judged(figure).toFixed(2)} x`;
  const verdict = figure.target === undefined ? '' : meetsTarget(figure) ? 'ok' : 'MISSED';
  const limit = figure.target === undefined ? '' : targetText(figure) + (figure.baseline === undefined ? '' : ' x');
  return [figure.name, figure.value.toFixed(2), figure.unit, figure.baseline?.toFixed(2) ?? '', ratio, limit, verdict, figure.remark ?? ''];
}

export function printReport(report: Report): void {
  const rows = [['', 'value', 'unit', 'baseline', 'ratio', 'target', '', ''], ...report.figures.map(row)];
  const widths = (rows[0] ?? []).map((_cell, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  console.log(`\n${report.bench}`);
  for (const cells of rows) {
    const line = cells.map((cell, column) =>
      column === 0 || column === REMARK ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
    );
    console.log(`  ${line.join('  ').trimEnd()}`);
  }
  for (const note of report.notes) console.log(`  ${note}`);
}

/** Writes the report to the results folder and returns its path. */
export function saveReport(report: Report, options: BenchOptions): string {
  mkdirSync(RESULTS_FOLDER, { recursive: true });
  const takenAt = new Date().toISOString();
  const file = path.join(RESULTS_FOLDER, `${report.bench}-${takenAt.replaceAll(':', '-')}.json`);
  const machine = { cpu: os.cpus()[0]?.model ?? '', cores: os.cpus().length, node: process.version, load: os.loadavg() };
  writeFileSync(file, `${JSON.stringify({ takenAt, machine, options, ...report }, null, 2)}\n`);
  return file;
}
