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
const MAX_USERNAME = 509;

/** The result of a check, always with an answer to send; `T` is the owner's type of a session. */
export interface CheckedRequest<T> {
  /** To be sent to the source address of the request. */
  readonly response: Buffer;
  /** The session of the request; null if the request was refused. */
  readonly session: T | null;
  /** The peer selected this pair. */
  readonly nominated: boolean;
  /** Priority that the peer states for its candidate (RFC 8445 section 7.1.1); 0 without one. */
  readonly priority: number;
}

/** The fault of a failed check, for the log. */
export type CheckFault = 'no USERNAME' | 'unknown USERNAME' | 'wrong password' | 'role conflict';
/** Called for failed checks; `session` is the session that the check names, if it exists. */
export type FaultWatch<T> = (fault: CheckFault, session: T | null) => void;

/** Finds the session of a local user fragment. */
export type FindSession<T extends { readonly credentials: IceCredentials }> = (ufrag: string) => T | undefined;

/**
 * Judges a datagram that looks like STUN. Null: no answer (not a request, or for an unknown session: answering would make the server a
 * reflector). Throws ProtocolError if it is not STUN.
 */
export function checkRequest<T extends { readonly credentials: IceCredentials }>(
  datagram: Buffer,
  from: { readonly host: string; readonly port: number },
  find: FindSession<T>,
  onFault: FaultWatch<T> = () => undefined,
): CheckedRequest<T> | null {
  const message = parseStun(datagram);
  if (message.type !== StunType.BINDING_REQUEST) return null;
  const username = message.attributes.get(StunAttribute.USERNAME);
  if (username === undefined || username.length > MAX_USERNAME) {
    onFault('no USERNAME', null);
    throw new ProtocolError('ICE_USERNAME', 'the request has no USERNAME');
  }
  const [local = ''] = username.toString().split(':', 1);
  const session = find(local);
  if (session === undefined) {
    onFault('unknown USERNAME', null);
    return null;
  }
  const { password } = session.credentials;
  if (!isStunAuthentic(message, password)) {
    onFault('wrong password', session);
    return null;
  }
  if (message.attributes.has(StunAttribute.ICE_CONTROLLED)) {
    // A lite agent is always controlled (RFC 8445 section 6.1.1), so the peer must take the other role.
    onFault('role conflict', session);
    return { response: refuse(message, 487, 'Role Conflict', password), session: null, nominated: false, priority: 0 };
  }
  const response = serializeStun({
    type: StunType.BINDING_SUCCESS,
    transaction: message.transaction,
    attributes: [[StunAttribute.XOR_MAPPED_ADDRESS, xorMappedAddress(from.host, from.port, message.transaction)]],
    password,
  });
  const { attributes } = message;
  return {
    response,
    session,
    nominated: attributes.has(StunAttribute.USE_CANDIDATE),
    priority: numberOf(attributes.get(StunAttribute.PRIORITY)),
  };
}

function numberOf(value: Buffer | undefined): number {
  return value?.length === 4 ? value.readUInt32BE() : 0;
}

function refuse({ transaction }: StunMessage, code: number, reason: string, password: string): Buffer {
  const attributes = [[StunAttribute.ERROR_CODE, errorCode(code, reason)]] as const;
  return serializeStun({ type: StunType.BINDING_ERROR, transaction, attributes, password });
}
