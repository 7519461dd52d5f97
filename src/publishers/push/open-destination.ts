/** Which kind of connection a request needs. */
import { type Destination, type DestinationOptions, PushFailure } from './destination.ts';
import { PushProtocol } from './push-request.ts';
import { RtmpDestination } from './rtmp-destination.ts';

/** Begins to connect. Throws `PushFailure` for what can never work. */
export function openDestination(options: DestinationOptions): Destination {
  switch (options.request.protocol) {
    case PushProtocol.RTMP:
      return new RtmpDestination(options);
    default:
      throw new PushFailure('unsuitable', `push over ${options.request.protocol} is not built yet`);
  }
}
