import type { PullSink } from './pull.ts';

/** Tests whether a source delivers media; discards the media. */
export class Probe implements PullSink {
  /** Resolves with the first packet, or with false when the source ends before. */
  readonly delivers: Promise<boolean>;
  readonly #answer: (delivers: boolean) => void;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.delivers = promise;
    this.#answer = resolve;
  }

  push(): void {
    this.#answer(true);
  }

  close(): void {
    this.#answer(false);
  }

  setTracks(): void {}
  pushEvent(): boolean {
    return false;
  }
  countBytes(): void {}
  heard(): void {}
}
