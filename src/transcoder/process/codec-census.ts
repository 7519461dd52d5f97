/** Counts the codecs at work in a process, by the library's names. */
export class CodecCensus {
  readonly #encoders = new Map<string, number>();
  readonly #decoders = new Map<string, number>();

  encoder(name: string, change: 1 | -1): void {
    count(this.#encoders, name, change);
  }

  decoder(name: string, change: 1 | -1): void {
    count(this.#decoders, name, change);
  }

  get figures(): { readonly encoders: Readonly<Record<string, number>>; readonly decoders: Readonly<Record<string, number>> } {
    return { encoders: Object.fromEntries(this.#encoders), decoders: Object.fromEntries(this.#decoders) };
  }
}

function count(map: Map<string, number>, name: string, change: number): void {
  const value = (map.get(name) ?? 0) + change;
  if (value > 0) map.set(name, value);
  else map.delete(name);
}
