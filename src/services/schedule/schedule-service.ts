/**
 * Scheduled channels as a service: files and live streams played one after the other, by the clock, on streams that never break.
 *
 * `Schedules` has the channels of each application with a `Schedule` provider. `ApplicationSchedules` follows their `.sch` files
 * (`definition-file.ts`), which people write and the API writes. A `ScheduledChannel` decides what is on air: by the clock alone
 * (`ScheduleTimeline`), and by reports of its playout about items that end or fail. `playout/` reads the media.
 *
 * Threads: the main one, with a timer for all channels: ten times a second while a channel is defined, else once. A worker reads schedule
 * files of 32 KiB and more (`definition-thread.ts`).
 * Limits: 1000 files of 2 MiB in a folder (`DefinitionFolder`); 5000 programs, 10,000 items and 50 time zones a channel; lengths of three
 * files at once are looked up for an application, one of them for an item about to play.
 * Specifications: none; `docs/guide/channels.md`, *Scheduled channels*, documents files and requests.
 */
import type { OriginMaps } from '../../cluster/origin-maps.ts';
import type { Application } from '../../core/application.ts';
import type { InboundStream } from '../../core/inbound-stream.ts';
import type { Orchestrator } from '../../core/orchestrator.ts';
import { channelKeeper } from '../../core/shared-channels.ts';
import type { SharedWork, WorkSharing } from '../../core/shared-work.ts';
import { streamOfUrl } from '../../core/stream-address.ts';
import { lengthOfBytes } from '../../playout/file-source.ts';
import type { LiveStreams } from '../../playout/live-source.ts';
import { MediaRoot } from '../../playout/media-root.ts';
import type { FileMarks } from '../../state/file-marks.ts';
import type { Logger } from '../../util/logger.ts';
import type { Service, ServiceContext } from '../service.ts';
import { ApplicationSchedules } from './application-schedules.ts';
import { channelPlayouts } from './channel-playouts.ts';
import { FileLengths } from './file-lengths.ts';
import { scheduleMetrics } from './schedule-metrics.ts';
import { Schedules } from './schedules.ts';

/** Dependencies of the scheduled channels. */
export type ScheduleContext = Pick<
  ServiceContext,
  'orchestrator' | 'definitions' | 'reading' | 'ffmpegFiles' | 'liveStreams' | 'transcoder' | 'clock' | 'logger'
> & {
  /** Which node's channels are played; absent: all are ours. */
  readonly originMaps?: SharedWork & WorkSharing & Pick<OriginMaps, 'addKeeper'>;
  /** Which files the API wrote; absent: those of this run. */
  readonly fileMarks?: FileMarks;
};

/** Has no port; the API uses `schedules`. */
export function startSchedules(context: ScheduleContext): Service & { readonly schedules: Schedules } {
  const { orchestrator, liveStreams: live, logger: parent } = context;
  const logger = parent.child({ part: 'schedule' });
  const schedules = new Schedules({
    open: (application, onDefined) => openSchedules(application, context, live, logger, onDefined),
    application: (vhost, app) => orchestrator.application(vhost, app),
    logger,
  });
  context.originMaps?.addKeeper(channelKeeper('scheduled', 'Schedule', schedules));
  return {
    schedules,
    metrics: [scheduleMetrics(schedules)],
    applicationStarted: (application) => schedules.follow(application),
    close: () => schedules.close(),
  };
}

/** Null if the provider is off, and in applications that viewers create by requests: these have no schedules. */
function openSchedules(
  application: Application,
  { orchestrator, originMaps: work, fileMarks: marks, definitions, reading, ffmpegFiles: foreign, transcoder, clock }: ScheduleContext,
  live: LiveStreams,
  parent: Logger,
  onDefined: () => void,
): ApplicationSchedules | null {
  const { vhost, name: app, definition } = application;
  const { schedule } = definition.config.providers;
  if (schedule === undefined || orchestrator.virtualHost(vhost)?.dynamic.has(application) === true) return null;
  const logger = parent.child({ vhost, app });
  const root = new MediaRoot(schedule.mediaRootDir, reading);
  const lengths = new FileLengths(
    {
      placeOf: (url) => root.pathOf(url),
      lengthOf: async (url) => {
        const bytes = await root.open(url);
        try {
          return await lengthOfBytes(bytes, logger, foreign);
        } finally {
          await bytes.close();
        }
      },
    },
    clock,
  );
  return new ApplicationSchedules({
    ...{ application, scheduleFilesDir: schedule.scheduleFilesDir, allowed: definitions, lengths, onDefined, clock, logger },
    ...(work !== undefined && { work }),
    ...(marks !== undefined && { marks }),
    open: channelPlayouts({ application, root, foreign, live, transcoder, clock, logger }),
    isRunning: (url) => {
      const address = streamOfUrl(url);
      return address !== null && startedStream(orchestrator, address.vhost, address.app, address.stream) !== undefined;
    },
  });
}

function startedStream(orchestrator: Orchestrator, vhost: string, app: string, name: string): InboundStream | undefined {
  const stream = orchestrator.application(vhost, app)?.stream(name);
  return stream?.started === true ? stream : undefined;
}
