/** Starts the dumps of plain HLS that the configuration wants; the API knows none of this kind. */
import { resolve } from 'node:path';
import type { AllowedFolders } from '../../../../util/allowed-folders.ts';
import type { Clock } from '../../../../util/clock.ts';
import { Conditions } from '../../../../util/conditions.ts';
import type { Logger } from '../../../../util/logger.ts';
import type { HlsStream } from '../../packager/ts/hls-stream.ts';
import type { HlsSettings } from '../../wire/ts/settings.ts';
import { FolderClaims } from '../folder-claims.ts';
import { type StreamAddress, wantedDumps } from '../wanted-dumps.ts';
import { TsDump } from './ts-dump.ts';

/** Where dumps may go. With `claims` shared, no two dumpers write into one folder. */
export interface TsDumperOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Relative paths start there. */
  readonly stateFolder: string;
  readonly allowed: AllowedFolders;
  /** Is told while a disk refuses files. Default: nobody looks. */
  readonly conditions?: Conditions;
  /** Shared with other dumpers; default: its own. */
  readonly claims?: FolderClaims;
}

/** One for the server, which closes it. Each stream that starts is told to it by the publisher. */
export class TsDumper {
  readonly #options: TsDumperOptions;
  /** Dumps whose files may not be complete yet. */
  readonly #active = new Set<TsDump>();
  readonly #claims: FolderClaims;

  constructor(options: TsDumperOptions) {
    this.#options = options;
    this.#claims = options.claims ?? new FolderClaims();
  }

  /** The stream has tracks and playlists. What cannot be dumped is told in the log. */
  streamStarted(stream: HlsStream, address: StreamAddress, settings: HlsSettings): void {
    const { allowed, clock, stateFolder, conditions = new Conditions() } = this.#options;
    for (const { id, outputPath, playlists } of wantedDumps(settings.dumps, address, clock.now())) {
      const folder = resolve(stateFolder, outputPath);
      const logger = this.#options.logger.child({ dump: id, vhost: address.vhost, app: address.app, stream: address.name });
      try {
        // As it was written: resolving would hide the way up.
        allowed.check(outputPath.startsWith('/') ? outputPath : `${stateFolder}/${outputPath}`);
        const unknown = playlists.find((name) => !stream.playlistNames.includes(name));
        if (unknown !== undefined) throw new Error(`the stream has no playlist ${unknown} for transport streams`);
        const prepare = async (made: TsDump): Promise<void> => {
          const claim = await this.#claims.claim(folder);
          claim.keep(made);
          await allowed.makeFolder(folder);
        };
        const dump = new TsDump({ stream, folder, playlists, clock, conditions, logger, prepare });
        this.#active.add(dump);
        void dump.over.then(() => this.#active.delete(dump));
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        logger.error({ err: error, folder }, `dump of the configuration cannot be started: ${reason}`);
      }
    }
  }

  /** Ends all dumps and resolves when their files are complete. Call after the streams are closed. */
  async close(): Promise<void> {
    const active = [...this.#active];
    for (const dump of active) dump.streamEnded();
    await Promise.all(active.map(({ over }) => over));
  }
}
