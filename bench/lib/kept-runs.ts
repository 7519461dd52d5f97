/** The reports that benches have kept as JSON, with a series for each figure. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Figure } from './report.ts';

/** A value of a figure with the facts about its run. */
export interface KeptValue extends Figure {
  /** ISO date and time. */
  readonly takenAt: string;
  /** Load of the machine in the minute before the report was kept. */
  readonly load: number;
  readonly machine: string;
}

/** A figure over all runs that have it, oldest first. */
export interface Series {
  readonly name: string;
  readonly values: readonly [KeptValue, ...KeptValue[]];
}

/** All kept results of a bench. */
export interface KeptBench {
  readonly bench: string;
  readonly series: readonly Series[];
  /** Notes of the newest run. */
  readonly notes: readonly string[];
}

/** Reports of a folder. */
export interface KeptRuns {
  readonly benches: readonly KeptBench[];
  /** Files that are not reports, each with the reason. */
  readonly unreadable: readonly string[];
}

/** The format of `saveReport`. */
interface KeptReport {
  readonly takenAt: string;
  readonly machine: { readonly cpu: string; readonly cores: number; readonly load: readonly number[] };
  readonly bench: string;
  readonly figures: readonly Figure[];
  readonly notes: readonly string[];
}

/** Reads every JSON file of a folder; other files are skipped. Throws if the folder does not exist. */
export function readRuns(folder: string): KeptRuns {
  const unreadable: string[] = [];
  const reports: KeptReport[] = [];
  for (const name of readdirSync(folder).filter((one) => one.endsWith('.json'))) {
    try {
      reports.push(checked(JSON.parse(readFileSync(path.join(folder, name), 'utf8'))));
    } catch (error) {
      unreadable.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  reports.sort((one, other) => one.takenAt.localeCompare(other.takenAt));
  const names = [...new Set(reports.map(({ bench }) => bench))].sort();
  return {
    benches: names.map((name) =>
      benchOf(
        name,
        reports.filter(({ bench }) => bench === name),
      ),
    ),
    unreadable,
  };
}

function benchOf(bench: string, reports: readonly KeptReport[]): KeptBench {
  const series = new Map<string, KeptValue[]>();
  for (const { figures, takenAt, machine } of reports) {
    for (const figure of figures) {
      // A measurement without a result is kept as null.
      if (!Number.isFinite(figure.value)) continue;
      const values = series.get(figure.name) ?? [];
      series.set(figure.name, values);
      values.push({ ...figure, takenAt, load: machine.load[0] ?? Number.NaN, machine: `${machine.cpu.trim()}, ${machine.cores} cores` });
    }
  }
  return {
    bench,
    series: [...series].map(([name, values]) => ({ name, values: values as [KeptValue, ...KeptValue[]] })),
    notes: reports.at(-1)?.notes ?? [],
  };
}

/** Throws for an invalid report. */
function checked(value: unknown): KeptReport {
  const report = value as Partial<KeptReport> | null;
  const isWhole =
    typeof report?.bench === 'string' &&
    !Number.isNaN(Date.parse(report.takenAt ?? '')) &&
    Array.isArray(report.figures) &&
    report.figures.every((figure: Partial<Figure> | null) => typeof figure?.name === 'string' && typeof figure.unit === 'string') &&
    Array.isArray(report.notes) &&
    Array.isArray(report.machine?.load);
  if (!isWhole) throw new Error('no report of a bench');
  return report as KeptReport;
}
