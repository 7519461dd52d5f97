/** Notices that the process has no file descriptors left. */
import { closeSync, openSync } from 'node:fs';
import type { RefusalLog } from './refusal-log.ts';

const INTERVAL_MS = 1000;
const EXHAUSTED = new Set(['EMFILE', 'ENFILE']);

/** Checks every second whether a descriptor is free: without free descriptors the event loop closes new connections silently. */
export class DescriptorWatch {
  /** Number of checks that found no free descriptor. */
  exhausted = 0;
  readonly #refusals: RefusalLog;
  readonly #timer: NodeJS.Timeout;

  constructor(refusals: RefusalLog) {
    this.#refusals = refusals;
    this.#timer = setInterval(() => this.look(), INTERVAL_MS).unref();
  }

  /** Checks now. */
  look(): void {
    try {
      closeSync(openSync('/dev/null', 'r'));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === undefined || !EXHAUSTED.has(code)) return;
      this.exhausted += 1;
      this.#refusals.note('no file descriptors are left (ulimit -n): connections are closed unanswered, and files cannot be opened', {
        code,
      });
    }
  }

  /** Idempotent. */
  close(): void {
    clearInterval(this.#timer);
  }
}
