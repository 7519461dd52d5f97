import { type OutputProfileConfig, readOutputProfile } from '../config/index.ts';

/** The output profile of streams that pass untouched (`PassthroughOutputProfile`). */
export function passthroughProfile(): OutputProfileConfig {
  const encodes = { videos: [{ bypass: true }], audios: [{ bypass: true }] };
  return readOutputProfile({ name: 'passthrough', outputStreamName: '${OriginStreamName}', encodes }).typed;
}
