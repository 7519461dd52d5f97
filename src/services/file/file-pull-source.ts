/** Pulls streams out of files. */
import { ProviderKind, SourceType } from '../../core/kinds.ts';
import type { PullSession, PullSource, PullTarget } from '../../core/pull.ts';
import { OpenFile } from '../../playout/file-bytes.ts';
import type { FfmpegFiles } from '../../playout/media-file.ts';
import { openMediaFile } from '../../playout/open-media-file.ts';
import type { AllowedFolders } from '../../util/allowed-folders.ts';
import type { Clock } from '../../util/clock.ts';
import { type FileProviderSettings, filePathOf } from './file-place.ts';
import { FileSession } from './file-session.ts';

export class FilePullSource implements PullSource {
  readonly schemes = ['file'];
  readonly provider = ProviderKind.FILE;
  readonly sourceType = SourceType.FILE;
  readonly #clock: Clock;
  readonly #allowed: AllowedFolders;
  readonly #foreign: FfmpegFiles;

  /** `allowed`: the folders of `Server/Storage/AllowedRoots`. `foreign` opens files that are neither MP4 nor MPEG-TS. */
  constructor(clock: Clock, allowed: AllowedFolders, foreign: FfmpegFiles) {
    this.#clock = clock;
    this.#allowed = allowed;
    this.#foreign = foreign;
  }

  async open({ url, settings, sink, signal, logger }: PullTarget): Promise<PullSession> {
    const path = await filePathOf(url, (settings ?? {}) as FileProviderSettings, this.#allowed);
    const bytes = await OpenFile.open(path);
    const close = (): void => void bytes.close();
    // Running reads fail then.
    signal.addEventListener('abort', close, { once: true });
    try {
      // A hung disk may have answered too late.
      signal.throwIfAborted();
      const file = await openMediaFile(bytes, logger, () => this.#foreign.openFile(bytes, logger));
      return await FileSession.start(file, { sink, clock: this.#clock, close });
    } catch (error) {
      close();
      throw error;
    } finally {
      signal.removeEventListener('abort', close);
    }
  }
}
