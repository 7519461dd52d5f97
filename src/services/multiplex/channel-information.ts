/** A multiplex channel as `GET …/multiplexChannels/{channel}` prints it. */
import { type ChannelDefinition, type ChannelPlaylist, DEFAULT_OPTIONS } from './channel-definition.ts';
import type { ChannelState } from './multiplex-channel.ts';

/** A channel's present state. */
export interface ChannelFigures {
  readonly definition: ChannelDefinition;
  readonly state: ChannelState;
  /** The reason for waiting, while it is `Pulling`. */
  readonly pullingMessage: string;
}

/** Members that say nothing are left out, as in the reference server. */
export function multiplexChannelInformation({ definition, state, pullingMessage }: ChannelFigures) {
  const { outputStream, sourceStreams, playlists } = definition;
  return {
    outputStream,
    ...(playlists.length > 0 && { playlists: playlists.map((playlist) => ({ ...playlist, options: optionsOf(playlist) })) }),
    ...(state === 'Pulling' && { pullingMessage }),
    sourceStreams: sourceStreams.map(({ name, url, trackMap }) => ({
      name,
      trackMap: [...trackMap]
        .sort((a, b) => (a.sourceTrackName < b.sourceTrackName ? -1 : 1))
        .map(({ sourceTrackName, newTrackName, bitrateConf, framerateConf }) => ({
          ...(bitrateConf > 0 && { bitrateConf }),
          ...(framerateConf > 0 && { framerateConf }),
          newTrackName,
          sourceTrackName,
        })),
      url,
    })),
    state,
  };
}

/** The options that differ from the defaults; null if there are none. */
function optionsOf({ options }: ChannelPlaylist): object | null {
  const said = Object.entries(options).filter(([key, value]) => value !== DEFAULT_OPTIONS[key as keyof typeof DEFAULT_OPTIONS]);
  return said.length === 0 ? null : Object.fromEntries(said);
}
