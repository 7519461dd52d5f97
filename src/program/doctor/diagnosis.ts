/** The doctor's finding about one subject. */

/** `problem`: a configured feature will not work; `warning`: it will work, but worse than it could. */
export type Status = 'ok' | 'warning' | 'problem';

/** A line of the answer. */
export interface Diagnosis {
  /** Name of the check, as in the documentation. */
  readonly name: string;
  readonly status: Status;
  readonly text: string;
  /** The remedy. */
  readonly remedy?: string;
}

/** Makes the diagnoses of one check. */
export function diagnosesOf(name: string): {
  readonly ok: (text: string) => Diagnosis;
  readonly warning: (text: string, remedy?: string) => Diagnosis;
  readonly problem: (text: string, remedy?: string) => Diagnosis;
} {
  const make =
    (status: Status) =>
    (text: string, remedy?: string): Diagnosis => ({ name, status, text, ...(remedy !== undefined && { remedy }) });
  return { ok: make('ok'), warning: make('warning'), problem: make('problem') };
}

/** Reads a file of the system; null if that fails. */
export type ReadSystem = (path: string) => string | null;

/** `1.5 GiB`, `512 MiB`, `64 KiB`. */
export function sizeText(bytes: number): string {
  const [unit = 'KiB', power = 1] =
    (
      [
        ['GiB', 3],
        ['MiB', 2],
      ] as const
    ).find(([, exponent]) => bytes >= 1024 ** exponent) ?? [];
  return `${Number((bytes / 1024 ** power).toPrecision(3))} ${unit}`;
}
