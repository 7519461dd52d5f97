/**
 * LL-HLS and HLS as a service, with their DVR and their dumps.
 *
 * `packager/` makes segments and parts of an outbound stream and keeps their window, `dvr/` the segments that left the window, `dump/`
 * files for later; `view/` answers requests; `wire/` defines the messages between packager and view. In each of these, `fmp4/` is LL-HLS
 * (CMAF) and `ts/` is HLS with MPEG-TS segments.
 *
 * Threads: `view/` runs in delivery threads, all else on the main thread; `scripts/check-rooms.ts` checks that they meet only in `wire/`.
 * Limits: parts of 16 MiB, segments of 128 MiB, 512 MiB of segments a feed, 20,000 waiting requests in a thread, 1000 dumps a stream.
 * Specifications: RFC 8216, draft-pantos-hls-rfc8216bis, ISO/IEC 23000-19 (CMAF), ISO/IEC 14496-12 and -15, ISO/IEC 13818-1.
 */
import type { StreamAddress } from '../../core/stream-address.ts';
import type { Service, ServiceContext } from '../service.ts';
import { DumpCounts, dumpMetrics } from './dump/dump-metrics.ts';
import { Dumper } from './dump/dumper.ts';
import { FolderClaims } from './dump/folder-claims.ts';
import { DvrStorage } from './dvr/dvr-storage.ts';
import { LlhlsPublisher } from './packager/fmp4/llhls-publisher.ts';
import { PartTimeliness } from './packager/fmp4/part-timeliness.ts';
import type { SegmentSource } from './packager/segment-observer.ts';
import { HlsPublisher } from './packager/ts/hls-publisher.ts';

/** Finds a packaged output stream by its name. */
type FindSegments = (address: StreamAddress) => SegmentSource | undefined;

/** Returns also the dumps for the API, and the lookup of packaged streams. The ports are those of all HTTP services. */
export async function startHls({
  config,
  delivery,
  clock,
  logger,
  stateFolder,
  writing,
  conditions,
  notices,
}: ServiceContext): Promise<Service & { readonly dumps: Dumper; readonly segments: Readonly<Record<'llhls' | 'hls', FindSegments>> }> {
  const counts = new DumpCounts();
  const timeliness = new PartTimeliness(clock);
  const files = { clock, logger, stateFolder, allowed: writing, conditions, claims: new FolderClaims(), counts };
  const dvr = new DvrStorage(files);
  const tsDumps = new Dumper({ ...files, notices });
  const dumps = new Dumper({ ...files, notices });
  // Before streams come, which have dumps of their own.
  await dumps.load();
  const lowLatency = config.modules.llhls.enable ? [new LlhlsPublisher(delivery, dumps, dvr)] : [];
  for (const publisher of lowLatency) publisher.timeliness = timeliness;
  return {
    dumps,
    segments: { llhls: (address) => dumps.find(address), hls: (address) => tsDumps.find(address) },
    publishers: [...lowLatency, new HlsPublisher(delivery, tsDumps, dvr)],
    metrics: [timeliness, dumpMetrics(counts, () => tsDumps.active + dumps.active)],
    started: () => dumps.recover(),
    finish: async () => {
      await Promise.all([tsDumps.close(), dumps.close()]);
    },
  };
}
