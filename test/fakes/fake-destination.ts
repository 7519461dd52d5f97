/** Push destinations without a network: port 1 refuses, every other port accepts everything. */
import type { Destination, DestinationOptions } from '../../src/services/push/destination.ts';
import { PushFailure } from '../../src/services/push/push-failure.ts';

export function openFakeDestination({ request, events }: DestinationOptions): Destination {
  let open = true;
  let sentBytes = 0;
  setImmediate(() => {
    if (!open) return;
    if (/:1(\/|\?|$)/.test(request.url)) events.onFailed(new PushFailure('unreachable', 'cannot connect: nobody listens'));
    else events.onOpen();
  });
  return {
    get sentBytes() {
      return sentBytes;
    },
    dropped: 0,
    write: (packet) => {
      sentBytes += packet.data.length;
      return true;
    },
    flush: () => undefined,
    close: async () => {
      open = false;
    },
  };
}
