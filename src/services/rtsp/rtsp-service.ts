/**
 * RTSP as a service: streams are pulled from cameras and servers, over TCP first and UDP where TCP is refused. There is no port of our own.
 *
 * `RtspPullSource` opens an `RtspSession` for each attempt; `RtpFeed` puts packets in order, in time by sender reports, and starts the
 * stream. The bytes are in `wire/rtsp`, `wire/rtp` and `wire/sdp`.
 *
 * Threads: the main one.
 * Limits: 16 tracks, 10 s for an answer, 5 redirects, 200 ms for a lost datagram; 5 s, 900 frames or 16 MiB held until sender reports have
 * come.
 * Specifications: RFC 2326 (with Digest of RFC 7616), RFC 3550, RFC 8866, and the payload formats that `wire/rtp` names.
 */
import type { Service, ServiceContext } from '../service.ts';
import { RtspPullSource } from './rtsp-pull-source.ts';

/** Has no port. */
export function startRtsp({ clock }: ServiceContext): Service {
  return { pullSources: [new RtspPullSource(clock)] };
}
