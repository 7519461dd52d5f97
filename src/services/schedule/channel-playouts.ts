/** Opens the players of an application's channels: for each a stream of the application, and a playout on it. */
import type { Application } from '../../core/application.ts';
import { ProviderKind, SourceType } from '../../core/kinds.ts';
import { addressOf } from '../../core/stream-address.ts';
import { subtitleTracks } from '../../core/subtitle-injector.ts';
import type { Transcoder } from '../../core/transcoding.ts';
import { ChannelPlayout } from '../../playout/channel-playout.ts';
import type { AudioLabel } from '../../playout/channel-slots.ts';
import { ChannelSources } from '../../playout/channel-sources.ts';
import type { LiveStreams } from '../../playout/live-source.ts';
import type { FfmpegFiles } from '../../playout/media-file.ts';
import type { MediaRoot } from '../../playout/media-root.ts';
import type { CuedItem, Playout } from '../../playout/playout.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { SCHEDULE_FILE } from './definition-file.ts';
import type { ChannelSettings } from './schedule-definition.ts';
import type { OpenPlayout } from './scheduled-channel.ts';

/** Dependencies shared by the playouts of an application. All of it stays its owner's. */
export interface ChannelPlayoutsOptions {
  readonly application: Application;
  readonly root: MediaRoot;
  /** Reads files that are neither MP4 nor MPEG-TS. */
  readonly foreign: FfmpegFiles;
  readonly live: LiveStreams;
  /** Converts items of other codecs than the channel has. */
  readonly transcoder: Transcoder;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Opening a playout throws `IngestRefused` if the name of the channel is taken. Its close ends the stream. */
export function channelPlayouts(options: ChannelPlayoutsOptions): OpenPlayout {
  const { application, root, foreign, live, transcoder, clock, logger: parent } = options;
  return (settings, listener, onLost) => {
    const { name, bypassTranscoder, videoTrack, errorToleranceDurationMs } = settings;
    const stream = application.openPulled({
      ...{ streamName: name, provider: ProviderKind.SCHEDULED, sourceType: SourceType.SCHEDULED },
      ...{ sourceUrl: `${name}${SCHEDULE_FILE}`, passthrough: bypassTranscoder },
      onClose: ({ detail }) => onLost(detail),
      onWatched: () => playout.wake(),
    });
    // The stream is there before its first item can be played, and while no item is.
    stream.show();
    // Repeated failures are logged by the code that decides about them.
    const logger = parent.limited.child({ stream: name });
    const channel = addressOf({ vhost: application.vhost, app: application.name, name });
    const playout = new ChannelPlayout({
      ...{ stream, listener, clock, logger, video: videoTrack, audio: audioOf(settings) },
      ...{
        sources: new ChannelSources({ channel, root, foreign, live, clock, logger, languages: languagesOf(application) }),
        errorToleranceMs: errorToleranceDurationMs,
      },
      ...{ transcoder: bypassTranscoder ? null : transcoder, address: channel },
    });
    return new StreamPlayout(playout, () => stream.close({ code: 'deleted', detail: 'the scheduled channel ended' }));
  };
}

/** Languages of subtitles, the default one first: it is that of files without a language in their names. */
function languagesOf({ definition }: Application): string[] {
  const tracks = subtitleTracks(definition.config.outputProfiles?.mediaOptions?.subtitles);
  return tracks.sort((a, b) => Number(b.isDefault) - Number(a.isDefault)).map(({ language }) => language);
}

/** A playout that takes its stream with it. */
class StreamPlayout implements Playout {
  readonly #playout: Playout;
  readonly #end: () => void;

  constructor(playout: Playout, end: () => void) {
    this.#playout = playout;
    this.#end = end;
  }

  get position(): number | null {
    return this.#playout.position;
  }

  get onAir(): CuedItem | null {
    return this.#playout.onAir;
  }

  cue(item: CuedItem | null): void {
    this.#playout.cue(item);
  }

  endAt(until: number): void {
    this.#playout.endAt(until);
  }

  stop(): void {
    this.#playout.stop();
  }

  close(): void {
    this.#playout.close();
    this.#end();
  }
}

function audioOf({ audioTrack, audioMap }: ChannelSettings): AudioLabel[] {
  if (!audioTrack) return [];
  if (audioMap.length === 0) return [{}];
  return audioMap.map(({ name, language, characteristics }) => ({
    ...(name !== '' && { publicName: name }),
    ...(language !== '' && { language }),
    ...(characteristics !== '' && { characteristics }),
  }));
}
