import { type OutputProfileConfig, readOutputProfile } from '../config/index.ts';

/** The output profile of streams that pass untouched (`PassthroughOutputProfile`). Tracks that have names keep them. */
export const PASSTHROUGH_PROFILE: OutputProfileConfig = readOutputProfile({
  name: 'passthrough',
  outputStreamName: '${OriginStreamName}',
  encodes: { videos: [{ bypass: true }], audios: [{ bypass: true }] },
}).typed;
