import type { Application } from './application.ts';

/** Starts the applications that are made together one after the other, or when they are asked for: whoever finds one finds it started. */
export class ApplicationStarts {
  readonly #start: (application: Application) => void;
  readonly #waiting = new Set<Application>();

  /** `start` is called once for each application. */
  constructor(start: (application: Application) => void) {
    this.#start = start;
  }

  /** These can be found from now on. Each step starts one of them. */
  all(applications: readonly Application[]): Iterable<void, void> {
    for (const application of applications) this.#waiting.add(application);
    return this.#inTurn(applications);
  }

  /** Starts an application, unless it has started already. */
  one(application: Application): void {
    if (this.#waiting.delete(application)) this.#start(application);
  }

  *#inTurn(applications: readonly Application[]): Generator<void, void> {
    for (const application of applications) {
      this.one(application);
      yield;
    }
  }
}
