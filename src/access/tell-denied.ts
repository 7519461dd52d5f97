/** The line about somebody whom access control refuses. */
import { hostPort } from '../util/client-address.ts';
import type { Logger } from '../util/logger.ts';
import type { AccessRequest, Denied } from './access-check.ts';

/** What tells it, for `AccessControlsOptions.tell`. Strangers can be refused as often as they like, so the lines are limited. */
export function tellDenied(logger: Logger): (denied: Denied, vhost: string, request: AccessRequest) => void {
  return (denied, vhost, request) => logger.limited.warn(deniedFields(denied, vhost, request), deniedLine(request, denied.reason));
}

/** What tells of faults, for `AccessControlsOptions.onFault`. */
export function tellFaults(logger: Logger): (error: unknown, what: string) => void {
  return (error, what) => logger.limited.error({ err: error }, `${what} failed inside the server`);
}

/** `viewer refused: …`. One of few lines, whatever the request. */
export function deniedLine({ direction }: AccessRequest, reason: string): string {
  return `${direction === 'incoming' ? 'publisher' : 'viewer'} refused: ${reason}`;
}

/** The URL without its query, where policies, signatures and keys are. */
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
