/** LL-HLS and HLS as a service, with their DVR and their dumps. */
import type { Service, ServiceContext } from '../service.ts';
import { Dumper } from './dump/dumper.ts';
import { FolderClaims } from './dump/folder-claims.ts';
import { DvrStorage } from './dvr/dvr-storage.ts';
import { LlhlsPublisher } from './packager/fmp4/llhls-publisher.ts';
import { HlsPublisher } from './packager/ts/hls-publisher.ts';

/** With the dumps that the API drives. The ports are those of all HTTP. */
export async function startHls({
  config,
  egress,
  clock,
  logger,
  stateFolder,
  writing,
  conditions,
}: ServiceContext): Promise<Service & { readonly dumps: Dumper }> {
  const files = { clock, logger, stateFolder, allowed: writing, conditions, claims: new FolderClaims() };
  const dvr = new DvrStorage(files);
  const tsDumps = new Dumper(files);
  const dumps = new Dumper(files);
  // Before streams come, which have dumps of their own.
  await dumps.recover();
  const lowLatency = config.modules.llhls.enable ? [new LlhlsPublisher(egress, dumps, dvr)] : [];
  return {
    dumps,
    publishers: [...lowLatency, new HlsPublisher(egress, tsDumps, dvr)],
    finish: async () => {
      await Promise.all([tsDumps.close(), dumps.close()]);
    },
  };
}
