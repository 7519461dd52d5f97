/** The dumps that the configuration starts with a stream. */
import { randomBytes } from 'node:crypto';
import type { StreamAddress } from '../../../core/stream-address.ts';
import { compileWildcard } from '../../../util/wildcard.ts';
import type { DumpsSettings } from '../wire/settings.ts';
import { expandDumpPath } from './dump-path.ts';

const SUFFIX = '.m3u8';
const RANDOM_ID_BYTES = 4;

/** A dump to start now, for one stream. */
export interface WantedDump {
  readonly id: string;
  /** Macros replaced. */
  readonly outputPath: string;
  /** Multivariant playlists to keep, with `.m3u8`; [] for all. */
  readonly playlists: readonly string[];
}

/** The dumps that are enabled for the stream. `time`: ms since the epoch. */
export function wantedDumps(settings: DumpsSettings, address: StreamAddress, time: number): WantedDump[] {
  return (settings?.dump ?? [])
    .filter(({ enable, targetStreamName }) => enable && compileWildcard(targetStreamName)(address.stream))
    .map(({ id, outputPath, playlists }) => ({
      id: id ?? randomBytes(RANDOM_ID_BYTES).toString('hex'),
      outputPath: expandDumpPath(outputPath, { ...address, time }),
      playlists: (playlists?.playlist ?? []).map((playlist) => (playlist.endsWith(SUFFIX) ? playlist : playlist + SUFFIX)),
    }));
}
