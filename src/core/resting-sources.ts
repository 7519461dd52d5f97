/** Sources whose sockets are read in batches while they have no viewers, which costs less CPU. */

/** A listener whose sockets may rest. */
export interface RestingSource {
  /** Reads all resting sockets at once. */
  readNow(): void;
}

/** All resting sources of the server. */
export class RestingSources {
  readonly #sources: RestingSource[] = [];

  /** Adds a source, for the life of the server. */
  add(source: RestingSource): void {
    this.#sources.push(source);
  }

  /** Call when a client waits for media or for the name of a stream. */
  readNow(): void {
    for (const source of this.#sources) source.readNow();
  }
}
