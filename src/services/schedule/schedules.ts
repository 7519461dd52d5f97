/** The scheduled channels of all applications. */
import type { Application } from '../../core/application.ts';
import type { ChannelApplications } from '../../core/shared-channels.ts';
import { type ApplicationAddress, applicationKey } from '../../core/stream-address.ts';
import { guarded } from '../../util/guarded.ts';
import type { Logger } from '../../util/logger.ts';
import type { ApplicationSchedules } from './application-schedules.ts';
import type { ScheduledChannel } from './scheduled-channel.ts';

const TICK_MS = 100;
/** Without channels the only task is to notice ended applications, and each wake-up costs an idle server. */
const IDLE_TICK_MS = 1000;
/** Interval of that check, in ticks. */
const SWEEP_TICKS = 10;

/** Dependencies of the channels. */
export interface SchedulesOptions {
  /** Null for an application that has none, by its settings. Calls `onDefined` when a channel is defined. */
  readonly open: (application: Application, onDefined: () => void) => ApplicationSchedules | null;
  /** The application that has these names now. */
  readonly application: (vhost: string, app: string) => Application | undefined;
  readonly logger: Logger;
}

/** Keeps the channels of each application while it runs. */
export class Schedules implements ChannelApplications {
  readonly #options: SchedulesOptions;
  readonly #running = new Map<string, ApplicationSchedules>();
  readonly #closing = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | null = null;
  /** The interval of the timer, ms. */
  #pace = 0;
  #ticks = 0;
  readonly #turn: () => void;
  /** Troubles of applications that have ended. */
  #pastTroubles = 0;
  #closed = false;

  constructor(options: SchedulesOptions) {
    this.#options = options;
    this.#turn = guarded(options.logger, 'the clock of scheduled channels', () => this.tick());
    this.#keepPace();
  }

  /** An application has started, for the first time or with new settings. */
  follow(application: Application): void {
    if (this.#closed) return;
    const key = keyOf(application);
    const before = this.#running.get(key);
    // Its streams have ended with the application.
    if (before !== undefined) this.#end(key, before);
    const schedules = this.#options.open(application, () => this.#keepPace());
    if (schedules === null) return;
    this.#running.set(key, schedules);
    this.#keepPace();
  }

  /** The channels of an application; null where it does not have the provider. */
  of(application: Application): ApplicationSchedules | null {
    const schedules = this.#running.get(keyOf(application));
    return schedules?.application === application ? schedules : null;
  }

  /** Channels as other nodes know them. */
  sharedIn(vhost: string): ApplicationSchedules['shared'][] {
    return [...this.#running.values()].flatMap(({ application, shared }) => (application.vhost === vhost ? [shared] : []));
  }

  /** Those of an application; null where it is not there or does not have the provider. */
  sharedOf(vhost: string, app: string): ApplicationSchedules['shared'] | null {
    const application = this.#options.application(vhost, app);
    return (application === undefined ? null : this.of(application))?.shared ?? null;
  }

  /** All channels that run. */
  get channels(): Iterable<ScheduledChannel> {
    return [...this.#running.values()].flatMap((schedules) => [...schedules.channels]);
  }

  /** Troubles of channels that have ended. */
  get pastTroubles(): number {
    let troubles = this.#pastTroubles;
    for (const schedules of this.#running.values()) troubles += schedules.pastTroubles;
    return troubles;
  }

  /** Happens ten times a second by itself while there are channels. */
  tick(): void {
    this.#ticks += 1;
    if (this.#pace !== TICK_MS || this.#ticks % SWEEP_TICKS === 0) this.#sweep();
    for (const schedules of this.#running.values()) schedules.tick();
    this.#keepPace();
  }

  /** Ends all channels. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    for (const [key, schedules] of [...this.#running]) this.#end(key, schedules);
    await Promise.all(this.#closing);
  }

  /** Gives the timer the interval that the present channels need. */
  #keepPace(): void {
    if (this.#closed) return;
    const pace = [...this.#running.values()].some((schedules) => schedules.hasDefinitions) ? TICK_MS : IDLE_TICK_MS;
    if (pace === this.#pace) return;
    this.#pace = pace;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = setInterval(this.#turn, pace).unref();
  }

  /** Removes channels of deleted applications. */
  #sweep(): void {
    for (const [key, schedules] of [...this.#running]) {
      const { vhost, name } = schedules.application;
      if (this.#options.application(vhost, name) !== schedules.application) this.#end(key, schedules);
    }
  }

  #end(key: string, schedules: ApplicationSchedules): void {
    this.#running.delete(key);
    const closing = schedules.close().finally(() => this.#closing.delete(closing));
    this.#pastTroubles += schedules.pastTroubles;
    this.#closing.add(closing);
  }
}

function keyOf({ vhost, name }: Application): string {
  return applicationKey({ vhost, app: name } satisfies ApplicationAddress);
}
