/** A list of unsigned 32-bit numbers in one growing block, at four bytes per number. */
export class Uint32List {
  #values = new Uint32Array(256);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(value: number): void {
    if (this.#length === this.#values.length) {
      const larger = new Uint32Array(this.#values.length * 2);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.#length] = value;
    this.#length += 1;
  }

  at(index: number): number {
    return index < this.#length ? (this.#values[index] ?? 0) : 0;
  }

  set(index: number, value: number): void {
    if (index < this.#length) this.#values[index] = value;
  }
}
