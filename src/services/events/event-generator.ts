import type { SourceEvent } from '../../core/ingest.ts';
import type { Clock } from '../../util/clock.ts';
import { guarded } from '../../util/guarded.ts';
import type { Logger } from '../../util/logger.ts';
import { compileWildcard } from '../../util/wildcard.ts';
import type { EventRule } from './event-rules.ts';

/** An application as a generator sees it. */
export interface GeneratingApplication {
  readonly closed: boolean;
  readonly streams: readonly { readonly name: string; inject(event: SourceEvent, urgent: boolean): boolean }[];
}

/** Puts the events of its rules onto the streams of an application, until that has ended or it is closed. */
export class EventGenerator {
  readonly #timers: NodeJS.Timeout[];
  readonly #application: GeneratingApplication;

  constructor(
    rules: readonly EventRule[],
    application: GeneratingApplication,
    { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
  ) {
    this.#application = application;
    this.#timers = rules.map((rule) => {
      const isWanted = compileWildcard(rule.streamName);
      const turn = guarded(logger, 'an event generator', () => {
        if (application.closed) this.close();
        else this.#send(rule, application, isWanted, clock.now());
      });
      return setInterval(turn, rule.interval);
    });
  }

  /** It sends nothing further. */
  get ended(): boolean {
    return this.#timers.length === 0;
  }

  /** Whether it has ended, which it does here where its application has: a rule may have its turn but once in some days. */
  sweep(): boolean {
    if (this.#application.closed) this.close();
    return this.ended;
  }

  /** Idempotent. */
  close(): void {
    for (const timer of this.#timers.splice(0)) clearInterval(timer);
  }

  /** The stream counts events that it refuses. */
  #send(rule: EventRule, application: GeneratingApplication, isWanted: (name: string) => boolean, now: number): void {
    const { format, target, keyframeOnly, urgent } = rule;
    const streams = application.streams.filter(({ name }) => isWanted(name));
    if (streams.length === 0) return;
    const event: SourceEvent = { format, target, keyframeOnly, data: rule.make(now), at: null };
    for (const stream of streams) stream.inject(event, urgent);
  }
}
