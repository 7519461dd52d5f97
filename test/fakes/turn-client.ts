/** Messages of a TURN client (RFC 8656), for tests of the relay and of its state machine. */
import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
import { StunAttribute, serializeStun, xorMappedAddress } from '../../src/wire/stun/stun-message.ts';

/** An attribute: number and value. */
export type TurnAttribute = readonly [number, Uint8Array];

/** Asks for UDP, the only transport that there is. */
export const UDP_TRANSPORT: TurnAttribute = [StunAttribute.REQUESTED_TRANSPORT, Buffer.of(17, 0, 0, 0)];

/** The account of a client. */
export interface TurnAccount {
  readonly realm: string;
  readonly username: string;
  readonly password: string;
}

/** The key of an account, with which messages are signed (RFC 8489, 9.2.2). */
export function turnKey({ username, realm, password }: TurnAccount): KeyObject {
  return createSecretKey(createHash('md5').update(`${username}:${realm}:${password}`).digest());
}

/** A request; without a nonce it is not authenticated. Default of `key`: that of the account. */
export function turnRequest(
  type: number,
  transaction: Buffer,
  attributes: readonly TurnAttribute[],
  shown: { readonly account: TurnAccount; readonly nonce: Buffer; readonly key?: KeyObject } | null,
): Buffer {
  if (shown === null) return serializeStun({ type, transaction, attributes, password: null });
  const { account, nonce, key = turnKey(account) } = shown;
  const own = [
    [StunAttribute.USERNAME, Buffer.from(account.username)],
    [StunAttribute.REALM, Buffer.from(account.realm)],
    [StunAttribute.NONCE, nonce],
  ] as const;
  return serializeStun({ type, transaction, attributes: [...attributes, ...own], password: key });
}

/** The peer that a request is about. */
export function peerAddress({ host, port }: { readonly host: string; readonly port: number }, transaction: Buffer): TurnAttribute {
  return [StunAttribute.XOR_PEER_ADDRESS, xorMappedAddress(host, port, transaction)];
}

/** The channel that a request is about. */
export function channelNumber(channel: number): TurnAttribute {
  return [StunAttribute.CHANNEL_NUMBER, Buffer.of(channel >> 8, channel & 0xff, 0, 0)];
}
