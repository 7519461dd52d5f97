/** A number the API prints as a real: an integral value keeps its `.0`. */
export class Real {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }

  /** JSON text of the value; NaN and infinities are printed as 0. */
  toString(): string {
    const value = Number.isFinite(this.value) ? this.value : 0;
    return Number.isInteger(value) ? `${value}.0` : String(value);
  }
}

/** For control servers: bit rates, which are texts in answers of the API, and reals with a fraction become numbers. */
export function asNumbers(value: unknown, key = ''): unknown {
  if (value instanceof Real) return Number.isFinite(value.value) ? value.value : 0;
  if (Array.isArray(value)) return value.map((item) => asNumbers(item));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, asNumbers(member, name)]));
  }
  return key.startsWith('bitrate') ? Number(value) : value;
}
