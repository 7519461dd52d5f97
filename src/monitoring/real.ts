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
