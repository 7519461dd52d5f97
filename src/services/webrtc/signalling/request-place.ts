/** The stream of a signalling request: `/<app>/<stream>[/<file>]?<query>`. */

import type { StreamAddress } from '../../../core/stream-address.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';
import { decodePath, hostName, queryValue, splitTarget } from '../../../wire/http/request-target.ts';

/** The place of a request; names are decoded. */
export interface StreamTarget extends StreamAddress {
  /** Players: the file name of a playlist, empty for the default one. */
  readonly playlist: string;
  /** Raw query of the request, for origins. */
  readonly query?: string;
}

/** The place of a request, with its words as they came: answers and logs show these. */
export interface RequestPlace {
  /** Null when no virtual host serves the host name, or the path names no stream. */
  readonly target: StreamTarget | null;
  /** Raw path components as requested. */
  readonly app: string;
  readonly stream: string;
  readonly file: string;
  readonly direction: string;
  /** Lower-case value of `transport`: `tcp` asks for a relay. */
  readonly transport: string;
}

/** Throws HttpFault for an invalid target. `virtualHostFor`: the virtual host of a host name. */
export function requestPlaceOf(target: string, host: string, virtualHostFor: (host: string) => string | undefined): RequestPlace {
  const { path, query, authority } = splitTarget(target);
  const [, app = '', stream = '', file = ''] = path.split('/');
  const vhost = virtualHostFor(hostName(authority ?? host));
  return {
    target:
      vhost === undefined || stream === ''
        ? null
        : { vhost, app: decodePath(app), stream: decodePath(stream), playlist: decodePath(file), query },
    app,
    stream,
    file,
    direction: queryValue(query, 'direction') ?? '',
    transport: (queryValue(query, 'transport') ?? '').toLowerCase(),
  };
}

/** The request of a peer, for the log. */
export function placeFields(target: StreamTarget | null): object {
  return target === null ? {} : { vhost: target.vhost, app: target.app, stream: target.stream };
}

/** For a request that has no target. */
export function noSuchStream(): ProtocolError {
  return new ProtocolError('WEBRTC_STREAM', 'no virtual host serves this host name, or the path names no stream');
}
