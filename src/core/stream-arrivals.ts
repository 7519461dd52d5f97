/** Notifies waiting callers when a stream can be played, or that it will not come. */

/** Known streams, by name. */
export interface StreamKnowledge {
  /** Viewers can be served: the output stream is there and has told its tracks. */
  readonly isPlayable: (name: string) => boolean;
  /** A source has the name. */
  readonly isComing: (name: string) => boolean;
}

interface Wait {
  readonly name: string;
  readonly end: (playable: boolean) => void;
}

/** For one application, which calls `look`. Callers give a time limit and bound the number of waiters; needs no closing. */
export class StreamArrivals {
  readonly #streams: StreamKnowledge;
  readonly #waits = new Set<Wait>();

  constructor(streams: StreamKnowledge) {
    this.#streams = streams;
  }

  /** Number of waiters. */
  get waiting(): number {
    return this.#waits.size;
  }

  /**
   * Resolves with true as soon as the stream can be played, with false when no source has its name any longer or after `limitMs`. Never
   * rejects.
   */
  wait(name: string, limitMs: number): Promise<boolean> {
    const answer = this.#answer(name);
    if (answer !== null) return Promise.resolve(answer);
    return new Promise((resolve) => {
      const end = (playable: boolean): void => {
        clearTimeout(timer);
        this.#waits.delete(wait);
        resolve(playable);
      };
      const timer = setTimeout(() => end(false), limitMs);
      const wait: Wait = { name, end };
      this.#waits.add(wait);
    });
  }

  /** A stream has come, told its tracks or gone. */
  look(): void {
    for (const { name, end } of this.#waits) {
      const answer = this.#answer(name);
      if (answer !== null) end(answer);
    }
  }

  /** Null: wait for it. */
  #answer(name: string): boolean | null {
    if (this.#streams.isPlayable(name)) return true;
    return this.#streams.isComing(name) ? null : false;
  }
}
