/** Chooses the kind of connection for a request. */
import type { LinkReporter } from '../../transport/srt/link-reporter.ts';
import { hostPort } from '../../util/client-address.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { Destination, DestinationOptions } from './destination.ts';
import { parseHostUrl } from './host-url.ts';
import { PushFailure } from './push-failure.ts';
import { PushProtocol } from './push-request.ts';
import { RtmpDestination } from './rtmp-destination.ts';
import { SrtLink } from './srt-link.ts';
import { TcpPayloadLink } from './tcp-payload-link.ts';
import { TransportDestination } from './transport-destination.ts';
import { UdpLink } from './udp-link.ts';

/** Begins to connect; `reporter` also reports SRT connections. Throws `PushFailure` for a URL that can never work. */
export function openDestination(options: DestinationOptions, reporter: LinkReporter): Destination {
  try {
    return open(options, reporter);
  } catch (error) {
    if (error instanceof ProtocolError) throw new PushFailure('unsuitable', `a track cannot be sent: ${error.message}`);
    throw error;
  }
}

function open(options: DestinationOptions, reporter: LinkReporter): Destination {
  const { request, owner, logger, timeouts, clock } = options;
  if (request.protocol === PushProtocol.RTMP) return new RtmpDestination(options);
  const url = parseHostUrl(request.url);
  return new TransportDestination(options, (events) => {
    switch (url.scheme) {
      case 'srt': {
        const peer = hostPort(url.host, url.port);
        const labels = { session: request.id, peer, vhost: owner.vhost, app: owner.app, stream: request.streamName };
        const { streamKey } = request;
        return new SrtLink({ url, streamKey, connectionTimeout: timeouts.connection, clock, labels, logger, reporter }, events);
      }
      case 'tcp':
        return new TcpPayloadLink({ host: url.host, port: url.port, sendTimeout: timeouts.send }, events);
      default:
        return new UdpLink(url, events);
    }
  });
}
