/**
 * Files as a service: streams are pulled from them (`file://`), and those that `Providers/FILE/StreamMap` names play as long as the
 * application runs.
 *
 * `FilePullSource` opens a `FileSession`, which paces the packets and begins again at the end of the file. `MovieFile` reads MP4,
 * `TransportFile` MPEG-TS, and a transcoder process (`FfmpegFile`) other files and other codecs. `Server/Storage/AllowedRoots` names the
 * folders of files.
 *
 * Threads: the main one; reads are asynchronous and bounded.
 * Limits: 64 MiB of `moov`, 16 MiB a sample, 10 s of one track ahead of another (`playout/movie-file.ts`).
 * Specifications: ISO/IEC 14496-12 and -15, ISO/IEC 13818-1.
 */
import type { Application } from '../../core/application.ts';
import type { PullRegistry } from '../../core/pull-registry.ts';
import type { Logger } from '../../util/logger.ts';
import type { Service, ServiceContext } from '../service.ts';
import { FilePullSource } from './file-pull-source.ts';

/** Has no port. */
export function startFiles({ clock, reading, ffmpegFiles, pulls, logger }: ServiceContext): Service {
  return {
    pullSources: [new FilePullSource(clock, reading, ffmpegFiles)],
    applicationStarted: (application) => startMappedFiles(application, pulls, logger),
  };
}

function startMappedFiles(application: Application, pulls: PullRegistry, logger: Logger): void {
  const { vhost, name: app, definition } = application;
  for (const { name, path } of definition.config.providers?.file?.streamMap?.stream ?? []) {
    const url = `file://${path.split('/').map(encodeURIComponent).join('/')}`;
    try {
      pulls.restore({ vhost, app, name, urls: [url], properties: PLAYED_FOR_EVER, configured: true });
    } catch (error) {
      logger.error({ vhost, app, stream: name, err: error }, `'${path}' of the StreamMap cannot be played as '${vhost}/${app}/${name}'`);
    }
  }
}

const PLAYED_FOR_EVER = {
  persistent: true,
  noInputFailoverTimeoutMs: 3000,
  unusedStreamDeletionTimeoutMs: 60_000,
  ignoreRtcpSRTimestamp: false,
  retryCount: 1,
  relay: false,
};
