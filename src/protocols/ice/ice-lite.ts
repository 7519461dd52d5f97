/** The ICE-lite side of connectivity checks (RFC 8445 sections 2.5 and 7.3): answers, and learns where the peer is. */
import { ProtocolError } from '../../util/protocol-error.ts';
import {
  errorCode,
  isStunAuthentic,
  parseStun,
  StunAttribute,
  type StunMessage,
  StunType,
  serializeStun,
  xorMappedAddress,
} from '../stun/stun-message.ts';
import type { IceCredentials } from './ice-credentials.ts';

/** Longest USERNAME (RFC 8489 section 14.3). */
const USERNAME_LIMIT = 509;

export interface CheckedRequest<T> {
  /** To send back to where the request came from. */
  readonly response: Buffer;
  /** Whom it was for; null when it was refused. */
  readonly session: T | null;
  /** The peer chose this pair. */
  readonly nominated: boolean;
}

/** Finds the session of a local user fragment. */
export type FindSession<T extends { readonly credentials: IceCredentials }> = (ufrag: string) => T | undefined;

/**
 * Judges a datagram that looks like STUN. Null: nothing is answered (no request, or for nobody we know: answering
 * strangers would make us a reflector). Throws ProtocolError when it is not STUN.
 */
export function checkRequest<T extends { readonly credentials: IceCredentials }>(
  datagram: Buffer,
  from: { readonly host: string; readonly port: number },
  find: FindSession<T>,
): CheckedRequest<T> | null {
  const message = parseStun(datagram);
  if (message.type !== StunType.BINDING_REQUEST) return null;
  const username = message.attributes.get(StunAttribute.USERNAME);
  if (username === undefined || username.length > USERNAME_LIMIT) throw new ProtocolError('ICE_USERNAME', 'the request has no USERNAME');
  const [local = ''] = username.toString().split(':', 1);
  const session = find(local);
  if (session === undefined) return null;
  const { password } = session.credentials;
  if (!isStunAuthentic(message, password)) return null;
  if (message.attributes.has(StunAttribute.ICE_CONTROLLED)) {
    // A lite agent is always controlled (RFC 8445 section 6.1.1), so the peer has to take the other role.
    return { response: refuse(message, 487, 'Role Conflict', password), session: null, nominated: false };
  }
  const response = serializeStun({
    type: StunType.BINDING_SUCCESS,
    transaction: message.transaction,
    attributes: [[StunAttribute.XOR_MAPPED_ADDRESS, xorMappedAddress(from.host, from.port, message.transaction)]],
    password,
  });
  return { response, session, nominated: message.attributes.has(StunAttribute.USE_CANDIDATE) };
}

function refuse({ transaction }: StunMessage, code: number, reason: string, password: string): Buffer {
  const attributes = [[StunAttribute.ERROR_CODE, errorCode(code, reason)]] as const;
  return serializeStun({ type: StunType.BINDING_ERROR, transaction, attributes, password });
}
