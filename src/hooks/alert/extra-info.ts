/** Facts about a failing encode for alerts, besides its stream. */
import type { LeftOut } from '../../core/outbound-stream.ts';
import { codecModuleOf } from '../../transcoder/codec-modules.ts';

/** `extraInfo` of an alert; unknown facts are left out. */
export function extraInfoOf({ fault, facts, trackId, sourceTrackId, profile, kind }: LeftOut): object {
  const { module, errors } = facts;
  const isDecoder = fault === 'decoder' || fault === 'decoding';
  return {
    ...(module !== undefined && {
      codecModule: { ...codecModuleOf(module, kind === 'audio' ? 'Audio' : 'Video'), isDecoder, isEncoder: !isDecoder },
    }),
    ...(errors !== undefined && { errorCount: errors.count, errorEvaluationInterval: errors.withinMs }),
    outputProfile: profile,
    parentSourceTrackId: sourceTrackId,
    sourceTrackId: trackId,
  };
}
