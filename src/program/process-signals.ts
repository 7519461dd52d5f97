/** The server's handling of signals. */
import type { Clock } from '../util/clock.ts';

/**
 * A signal to a process group reaches the server twice: directly, and from the `npm` that started it. A repeated signal within this time is
 * taken for the second copy, ms.
 */
const ECHO_MS = 1000;
const STOPS = ['SIGINT', 'SIGTERM'] as const;
/** Signals with another default: SIGUSR2 would end the process, and SIGUSR1 would open the debugger to all local users. */
const HARMLESS = { SIGUSR1: 'no effect', SIGUSR2: 'no effect' } as const;

/** The owner's reaction to a signal. */
export interface SignalHandler {
  /** Called for the first signal to stop. */
  stop(signal: NodeJS.Signals): void;
  /** Called for a second signal: the user does not want to wait. */
  force(): void;
  /** Called when the configuration must be read again. */
  reload(): void;
  /** Called with a sentence about a signal without effect. */
  say(sentence: string): void;
}

/** The part of `process` that is needed here. */
export interface SignalSource {
  on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
}

/** Receives signals during the life of the process; signals before `follow` are kept for it. */
export class ProcessSignals {
  readonly #clock: Clock;
  #handler: SignalHandler | null = null;
  #waiting: NodeJS.Signals[] = [];
  #first: { readonly signal: NodeJS.Signals; readonly at: number } | null = null;

  constructor(clock: Clock, source: SignalSource = process) {
    this.#clock = clock;
    // A reload before `follow` is dropped, because the file is just being read.
    source.on('SIGHUP', () => this.#handler?.reload());
    for (const signal of STOPS) source.on(signal, () => this.#onStop(signal));
    for (const [signal, meaning] of Object.entries(HARMLESS)) {
      source.on(signal as keyof typeof HARMLESS, () => this.#handler?.say(`${signal}: ${meaning}`));
    }
  }

  /** Sends signals to `handler` from now on. Call once. */
  follow(handler: SignalHandler): void {
    this.#handler = handler;
    const [signal] = this.#waiting;
    this.#waiting = [];
    if (signal !== undefined) handler.stop(signal);
  }

  #onStop(signal: NodeJS.Signals): void {
    const now = this.#clock.monotonic();
    if (this.#first === null) {
      this.#first = { signal, at: now };
      if (this.#handler === null) this.#waiting.push(signal);
      else this.#handler.stop(signal);
    } else if (this.#first.signal !== signal || now - this.#first.at >= ECHO_MS) {
      // Nothing has started, so the process can simply exit.
      if (this.#handler === null) process.exit(1);
      this.#handler.force();
    }
  }
}
