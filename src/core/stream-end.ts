import type { EventCounters } from './event-injector.ts';
import type { CloseReason } from './ingest.ts';
import type { RouterCounters } from './media-router.ts';
import type { CueCounters } from './subtitle-injector.ts';

/** Log fields of an ended stream, beside the reason; `now` is the wall clock, ms. */
export function endFacts(
  stream: {
    readonly createdAt: number;
    readonly meter: { readonly in: { readonly total: number } };
    readonly events: { readonly counters: EventCounters };
    readonly subtitles: { readonly counters: CueCounters };
  },
  router: { readonly counters: RouterCounters; readonly jumps: number },
  { reason, now }: { readonly reason: CloseReason; readonly now: number },
): object {
  const { discarded, malformed, firstFault } = router.counters;
  const events = stream.events.counters;
  const cues = stream.subtitles.counters;
  return {
    reason: reason.code,
    bytesIn: stream.meter.in.total,
    seconds: Math.round((now - stream.createdAt) / 1000),
    discarded,
    malformed,
    ...(firstFault !== null && { firstFault }),
    jumps: router.jumps,
    ...((events.carried > 0 || events.refused > 0) && { events }),
    ...((cues.carried > 0 || cues.refused > 0) && { cues }),
  };
}
