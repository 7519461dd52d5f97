/** Texts that differ between viewers only in one repeated piece, the tail: prepared once, then copied for each viewer. */

export class TailoredText {
  /** The text with the tail of one viewer. */
  readonly #template: Buffer;
  /** Offsets of the tails, bytes. */
  readonly places: Uint32Array;
  readonly #tailLength: number;

  /** For `pieces` with tails as long as `tail`, which is ASCII, between them. */
  constructor(pieces: readonly string[], tail: string) {
    this.#template = Buffer.from(pieces.join(tail));
    this.#tailLength = tail.length;
    let end = 0;
    this.places = Uint32Array.from(pieces.slice(0, -1), (piece) => {
      const start = end + Buffer.byteLength(piece);
      end = start + tail.length;
      return start;
    });
  }

  /** Bytes of the text. */
  get length(): number {
    return this.#template.length;
  }

  /** Writes the text for one viewer; `target` has the text's length, `tail` the given length. */
  write(tail: string, target: Buffer): void {
    this.#template.copy(target);
    const { places } = this;
    const [first] = places;
    if (first === undefined) return;
    target.write(tail, first, 'latin1');
    for (let n = 1; n < places.length; n += 1) target.copyWithin(places[n] ?? 0, first, first + this.#tailLength);
  }
}
