/** Sources that take what they receive in large pieces while nobody watches, so that they cost less. */

/** A listener whose connections may rest. */
export interface RestingSource {
  /** Takes at once what has come. */
  rouse(): void;
}

/** All of a server. */
export class RestingSources {
  readonly #sources: RestingSource[] = [];

  /** Adds one for the life of the server. */
  add(source: RestingSource): void {
    this.#sources.push(source);
  }

  /** Somebody is there who waits for media, or for the name of a stream. */
  rouse(): void {
    for (const source of this.#sources) source.rouse();
  }
}
