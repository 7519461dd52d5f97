/** Scheduled channels of a server without media: the schedule files are real, and the test advances the clock. */
import { join } from 'node:path';
import type { Application } from '../../src/core/application.ts';
import { ProviderKind, SourceType } from '../../src/core/kinds.ts';
import type { Orchestrator } from '../../src/core/orchestrator.ts';
import { ApplicationSchedules } from '../../src/services/schedule/application-schedules.ts';
import { Schedules } from '../../src/services/schedule/schedules.ts';
import type { AllowedFolders } from '../../src/util/allowed-folders.ts';
import type { Logger } from '../../src/util/logger.ts';
import { FakeLengths } from './fake-lengths.ts';
import { type FakeMedia, FakePlayout } from './fake-playout.ts';
import type { ManualClock } from './manual-clock.ts';

const STEP_MS = 20;
const TICK_STEPS = 5;

export interface FakeSchedulesOptions {
  readonly orchestrator: Pick<Orchestrator, 'application'>;
  /** Schedule files are in `schedules/<vhost>/<app>` below it. */
  readonly folder: string;
  readonly allowed: AllowedFolders;
  readonly clock: ManualClock;
  readonly logger: Logger;
}

export class FakeSchedules {
  readonly schedules: Schedules;
  /** By URL. */
  readonly media = new Map<string, FakeMedia>();
  readonly playouts: FakePlayout[] = [];
  readonly #options: FakeSchedulesOptions;

  constructor(options: FakeSchedulesOptions) {
    this.#options = options;
    const { orchestrator, logger } = options;
    this.schedules = new Schedules({
      open: (application, onDefined) =>
        application.definition.config.providers.schedule === undefined ? null : this.#open(application, onDefined),
      application: (vhost, app) => orchestrator.application(vhost, app),
      logger,
    });
  }

  /** Folder of an application's schedule files. */
  folderOf({ vhost, app }: { readonly vhost: string; readonly app: string }): string {
    return join(this.#options.folder, 'schedules', vhost, app);
  }

  /** Advances the clock by `ms`. */
  async advance(ms: number): Promise<void> {
    for (let at = 0, steps = 0; at < ms; at += STEP_MS, steps += 1) {
      this.#options.clock.advance(STEP_MS);
      for (const playout of this.playouts) playout.step();
      if (steps % TICK_STEPS === 0) this.schedules.tick();
      // Lookups resolve in a later turn.
      await Promise.resolve();
    }
  }

  #open(application: Application, onDefined: () => void): ApplicationSchedules {
    const { clock, logger, allowed } = this.#options;
    const { vhost, name: app } = application;
    return new ApplicationSchedules({
      ...{ application, allowed, clock, logger, onDefined, scheduleFilesDir: this.folderOf({ vhost, app }) },
      lengths: new FakeLengths(this.media),
      isRunning: (url) => this.media.has(url) && this.media.get(url)?.missing !== true,
      open: (settings, listener, onLost) => {
        const stream = application.openPulled({
          ...{ streamName: settings.name, provider: ProviderKind.SCHEDULED, sourceType: SourceType.SCHEDULED, sourceUrl: 'fake' },
          onClose: ({ detail }) => onLost(detail),
        });
        stream.show();
        const playout = new FakePlayout(clock, this.media, listener, () => stream.close({ code: 'deleted', detail: 'closed' }));
        this.playouts.push(playout);
        return playout;
      },
    });
  }
}
