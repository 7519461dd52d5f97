/** Messages of a TURN client (RFC 8656), to test the relay and its state machine. */
import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
import { StunAttribute, serializeStun, xorMappedAddress } from '../../src/wire/stun/stun-message.ts';

/** An attribute: number and value. */
export type TurnAttribute = readonly [number, Uint8Array];

/** Requests UDP, the only supported transport. */
export const UDP_TRANSPORT: TurnAttribute = [StunAttribute.REQUESTED_TRANSPORT, Buffer.of(17, 0, 0, 0)];

/** The account of a client. */
export interface TurnAccount {
  readonly realm: string;
  readonly username: string;
  readonly password: string;
}

/** The key by which messages of an account are signed (RFC 8489, 9.2.2). */
export function turnKey({ username, realm, password }: TurnAccount): KeyObject {
  return createSecretKey(createHash('md5').update(`${username}:${realm}:${password}`).digest());
}

/** A request; without a nonce it is not authenticated. Default of `key`: the account's. */
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

/** The attribute for the peer of a request. */
export function peerAddress({ host, port }: { readonly host: string; readonly port: number }, transaction: Buffer): TurnAttribute {
  return [StunAttribute.XOR_PEER_ADDRESS, xorMappedAddress(host, port, transaction)];
}

/** The attribute for the channel of a request. */
export function channelNumber(channel: number): TurnAttribute {
  return [StunAttribute.CHANNEL_NUMBER, Buffer.of(channel >> 8, channel & 0xff, 0, 0)];
}
