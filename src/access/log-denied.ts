/** The log line of a refusal by access control. */
import type { Notices } from '../core/notices/notice.ts';
import { hostPort } from '../util/client-address.ts';
import type { Logger } from '../util/logger.ts';
import type { AccessRequest, Denied } from './access-check.ts';
import type { RefusalCount } from './refusal-counts.ts';

/** Application and stream in a URL. */
const STREAM_OF_URL = /^[a-z]+:\/\/[^/?#]*\/([^/?#]+)\/([^/?#]+)/i;

/**
 * Logs refusals, for `AccessControlsOptions.tell`. Unauthenticated clients can cause any number of refusals, so the lines are rate-limited.
 */
export function logDenied(logger: Logger, notices: Notices): (denied: Denied, vhost: string, request: AccessRequest) => void {
  return (denied, vhost, request) => {
    logger.limited.warn(deniedFields(denied, vhost, request), deniedLine(request, denied.reason));
    const { direction, protocol, url } = request;
    const [, app, stream] = STREAM_OF_URL.exec(url) ?? [];
    const place = { vhost, ...(app !== undefined && stream !== undefined && { app, stream }) };
    notices.post({ type: 'refusal.counted', ...place, direction, protocol, reason: denied.code, count: 1, detail: denied.reason });
  };
}

/** Posts the refusals of delivery threads, which report counts only. */
export function postRefusals(notices: Notices, counts: readonly RefusalCount[]): void {
  for (const { direction, protocol, code, count } of counts)
    notices.post({ type: 'refusal.counted', direction, protocol, reason: code, count });
}

/** Logs faults, for `AccessControlsOptions.onFault`. */
export function logFaults(logger: Logger): (error: unknown, what: string) => void {
  return (error, what) => logger.limited.error({ err: error }, `${what} failed inside the server`);
}

/** `viewer refused: …`: one of a fixed set of lines, independent of the request's texts. */
export function deniedLine({ direction }: AccessRequest, reason: string): string {
  return `${direction === 'incoming' ? 'publisher' : 'viewer'} refused: ${reason}`;
}

/** The URL without its query, which has policies, signatures and keys. */
export function deniedFields({ code, said }: Denied, vhost: string, { protocol, url, client }: AccessRequest): object {
  return {
    code,
    ...(said !== undefined && { said }),
    vhost,
    over: protocol,
    peer: hostPort(client.address, client.port),
    url: url.split('?', 1)[0],
  };
}
