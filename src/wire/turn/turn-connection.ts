/**
 * The server's side of TURN over one TCP connection (RFC 8656), without sockets.
 *
 * It relays nothing to the network: every datagram goes to the owner, which acts as the peer. So a player behind a firewall that allows
 * only TCP reaches our media ports, and no other address.
 */
import { createHash, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { ProtocolError } from '../../util/protocol-error.ts';
import {
  errorCode,
  errorOf,
  isStunAuthentic,
  parseStun,
  readXorMappedAddress,
  StunAttribute,
  type StunMessage,
  StunType,
  serializeStun,
  successOf,
  xorMappedAddress,
} from '../stun/stun-message.ts';
import { frameChannelData, isChannelNumber, TurnFramer } from './turn-framer.ts';

/** Default lifetime of an allocation without a refresh, s. */
const LIFETIME_S = 3600;
const MIN_LIFETIME_S = 600;
/** Protocol number of UDP in REQUESTED-TRANSPORT. */
const UDP = 17;
/** Values of REQUESTED-ADDRESS-FAMILY. */
const IPV4 = 1;
const IPV6 = 2;
/** Limit of permissions and channels of one allocation: a browser needs one for each of our candidates. */
const MAX_PEERS = 64;

/** An IP address, IPv6 without brackets, and a port. */
export interface TurnAddress {
  readonly host: string;
  readonly port: number;
}

/** Addresses announced for an allocation, by its family. */
export interface RelayedAddresses {
  readonly ipv4: TurnAddress;
  readonly ipv6: TurnAddress;
}

/** The long-term credential that all clients share (RFC 8489 section 9.2). */
export interface TurnAccount {
  readonly realm: string;
  readonly username: string;
  readonly password: string;
}

/** The owner of the connection. Called within `push` and `deliver`. */
export interface TurnOwner {
  /** Bytes for the client. */
  send(bytes: Buffer): void;
  /** A datagram that the client sent to `peer`; valid during the call. */
  datagram(peer: TurnAddress, bytes: Buffer): void;
  /** The allocation was made, refreshed or deleted: it lasts until `end`, in the time of `now`. */
  allocatedUntil(end: number): void;
  /** Monotonic time, ms. */
  now(): number;
}

interface Peer {
  readonly address: TurnAddress;
  /** 0 until a channel is bound. */
  channel: number;
}

/** One for each TCP connection; an allocation that is not refreshed in time counts as none. It has no timer and needs no closing. */
export class TurnConnection {
  readonly #owner: TurnOwner;
  readonly #account: TurnAccount;
  readonly #client: TurnAddress;
  readonly #addresses: RelayedAddresses;
  readonly #key: KeyObject;
  readonly #nonce = randomBytes(16).toString('hex');
  readonly #framer = new TurnFramer();
  readonly #permitted = new Set<string>();
  readonly #peers = new Map<string, Peer>();
  readonly #channels = new Map<number, Peer>();
  /** Relayed address of the allocation. */
  #relayed: TurnAddress;
  /** Monotonic time, ms; 0 without an allocation. */
  #expiresAt = 0;
  #dropped = 0;

  /** `client` is the source address of the connection; `relayed` addresses are only names. */
  constructor(owner: TurnOwner, account: TurnAccount, client: TurnAddress, relayed: RelayedAddresses) {
    this.#owner = owner;
    this.#account = account;
    this.#client = client;
    this.#addresses = relayed;
    this.#relayed = relayed.ipv4;
    this.#key = createSecretKey(createHash('md5').update(`${account.username}:${account.realm}:${account.password}`).digest());
  }

  get isAllocated(): boolean {
    return this.#expiresAt > this.#owner.now();
  }

  /** The relayed address announced to the client. */
  get relayed(): TurnAddress {
    return this.#relayed;
  }

  /** Datagrams from or to peers that the client has no permission for. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Bytes from the client. Throws ProtocolError if they are not TURN: the connection is unusable then. */
  push(chunk: Buffer): void {
    for (const frame of this.#framer.push(chunk)) {
      if (frame.kind === 'message') this.#message(parseStun(frame.bytes));
      else this.#fromClient(this.#channels.get(frame.channel)?.address, frame.datagram);
    }
  }

  /** A datagram from `peer` for the client. */
  deliver(address: TurnAddress, datagram: Uint8Array): void {
    if (!this.isAllocated || !this.#permitted.has(address.host)) {
      this.#dropped += 1;
      return;
    }
    const channel = this.#peers.get(keyOf(address))?.channel ?? 0;
    this.#owner.send(channel === 0 ? dataIndication(address, datagram) : frameChannelData(channel, datagram));
  }

  #fromClient(address: TurnAddress | undefined, datagram: Buffer): void {
    if (address === undefined || !this.isAllocated || !this.#permitted.has(address.host)) this.#dropped += 1;
    else this.#owner.datagram(address, datagram);
  }

  #message(message: StunMessage): void {
    switch (message.type) {
      case StunType.BINDING_REQUEST:
        this.#grant(message, [this.#mappedAddress(message)], null);
        return;
      case StunType.SEND_INDICATION: {
        const data = message.attributes.get(StunAttribute.DATA);
        if (data !== undefined) this.#fromClient(peerOf(message), data);
        return;
      }
      case StunType.ALLOCATE_REQUEST:
      case StunType.REFRESH_REQUEST:
      case StunType.CREATE_PERMISSION_REQUEST:
      case StunType.CHANNEL_BIND_REQUEST:
        if (this.#isAuthorised(message)) this.#request(message);
        return;
      default:
      // Other indications and stray responses get no answer.
    }
  }

  #request(message: StunMessage): void {
    if (message.type === StunType.ALLOCATE_REQUEST) {
      this.#allocate(message);
    } else if (!this.isAllocated) {
      this.#refuse(message, 437, 'Allocation Mismatch');
    } else if (message.type === StunType.REFRESH_REQUEST) {
      const lifetime = lifetimeOf(message);
      this.#lasts(lifetime);
      this.#grant(message, [lifetimeAttribute(lifetime)]);
    } else if (message.type === StunType.CREATE_PERMISSION_REQUEST) {
      this.#createPermissions(message);
    } else {
      this.#bindChannel(message);
    }
  }

  /** Creates all requested permissions or none (RFC 8656 section 9.2). */
  #createPermissions(message: StunMessage): void {
    const peers = message.peers.map((value) => readXorMappedAddress(value, message.transaction));
    if (peers.length === 0) this.#refuse(message, 400, 'XOR-PEER-ADDRESS is missing');
    else if (!peers.every((peer) => this.#isReachable(peer))) this.#refuse(message, 443, 'Peer Address Family Mismatch');
    else if (this.#permit(peers)) this.#grant(message, []);
    else this.#refuse(message, 508, 'Insufficient Capacity');
  }

  #allocate(message: StunMessage): void {
    if (this.isAllocated) {
      this.#refuse(message, 437, 'Allocation Mismatch');
      return;
    }
    if (message.attributes.get(StunAttribute.REQUESTED_TRANSPORT)?.[0] !== UDP) {
      this.#refuse(message, 442, 'Unsupported Transport Protocol');
      return;
    }
    const family = message.attributes.get(StunAttribute.REQUESTED_ADDRESS_FAMILY)?.[0] ?? IPV4;
    if (family !== IPV4 && family !== IPV6) {
      this.#refuse(message, 440, 'Address Family not Supported');
      return;
    }
    this.#relayed = family === IPV6 ? this.#addresses.ipv6 : this.#addresses.ipv4;
    const lifetime = lifetimeOf(message) || MIN_LIFETIME_S;
    this.#lasts(lifetime);
    const { host, port } = this.#relayed;
    this.#grant(message, [
      [StunAttribute.XOR_RELAYED_ADDRESS, xorMappedAddress(host, port, message.transaction)],
      lifetimeAttribute(lifetime),
      this.#mappedAddress(message),
    ]);
  }

  #lasts(seconds: number): void {
    this.#expiresAt = this.#owner.now() + seconds * 1000;
    this.#owner.allocatedUntil(this.#expiresAt);
  }

  /** RFC 8656 section 12.2: a channel is bound to one peer for good. */
  #bindChannel(message: StunMessage): void {
    const number = message.attributes.get(StunAttribute.CHANNEL_NUMBER);
    const channel = number !== undefined && number.length >= 2 ? number.readUInt16BE() : 0;
    const address = peerOf(message);
    if (!isChannelNumber(channel) || address === undefined) {
      this.#refuse(message, 400, 'CHANNEL-NUMBER or XOR-PEER-ADDRESS is missing or wrong');
      return;
    }
    if (!this.#isReachable(address)) {
      this.#refuse(message, 443, 'Peer Address Family Mismatch');
      return;
    }
    const bound = this.#channels.get(channel);
    const peer = this.#peers.get(keyOf(address)) ?? { address, channel: 0 };
    if ((bound !== undefined && bound !== peer) || (peer.channel !== 0 && peer.channel !== channel)) {
      this.#refuse(message, 400, 'the channel or the peer is bound already');
      return;
    }
    if (!this.#permit([address]) || (bound === undefined && this.#channels.size >= MAX_PEERS)) {
      this.#refuse(message, 508, 'Insufficient Capacity');
      return;
    }
    peer.channel = channel;
    this.#peers.set(keyOf(address), peer);
    this.#channels.set(channel, peer);
    this.#grant(message, []);
  }

  #permit(peers: readonly TurnAddress[]): boolean {
    const hosts = new Set(peers.map(({ host }) => host).filter((host) => !this.#permitted.has(host)));
    if (this.#permitted.size + hosts.size > MAX_PEERS) return false;
    for (const host of hosts) this.#permitted.add(host);
    return true;
  }

  /** An allocation has one family, and reaches only peers of that family (RFC 8656 sections 9.2 and 12.2). */
  #isReachable({ host }: TurnAddress): boolean {
    return isIPv6(host) === isIPv6(this.#relayed.host);
  }

  /** The long-term credential mechanism (RFC 8489 section 9.2.4); answers unauthorised clients itself. */
  #isAuthorised(message: StunMessage): boolean {
    const { realm, username } = this.#account;
    const { attributes } = message;
    if (message.integrityAt < 0) {
      this.#challenge(message, 401, 'Unauthorized');
      return false;
    }
    if (attributes.get(StunAttribute.NONCE)?.toString() !== this.#nonce) {
      this.#challenge(message, 438, 'Stale Nonce');
      return false;
    }
    const isKnown =
      attributes.get(StunAttribute.USERNAME)?.toString() === username && attributes.get(StunAttribute.REALM)?.toString() === realm;
    if (!isKnown || !isStunAuthentic(message, this.#key)) {
      this.#challenge(message, 401, 'Unauthorized');
      return false;
    }
    return true;
  }

  #challenge({ type, transaction }: StunMessage, code: number, reason: string): void {
    const attributes = [
      [StunAttribute.ERROR_CODE, errorCode(code, reason)],
      [StunAttribute.REALM, Buffer.from(this.#account.realm)],
      [StunAttribute.NONCE, Buffer.from(this.#nonce)],
    ] as const;
    this.#owner.send(serializeStun({ type: errorOf(type), transaction, attributes, password: null }));
  }

  #refuse({ type, transaction }: StunMessage, code: number, reason: string): void {
    const attributes = [[StunAttribute.ERROR_CODE, errorCode(code, reason)]] as const;
    this.#owner.send(serializeStun({ type: errorOf(type), transaction, attributes, password: this.#key }));
  }

  #grant(
    { type, transaction }: StunMessage,
    attributes: readonly (readonly [number, Uint8Array])[],
    key: KeyObject | null = this.#key,
  ): void {
    this.#owner.send(serializeStun({ type: successOf(type), transaction, attributes, password: key }));
  }

  #mappedAddress({ transaction }: StunMessage): readonly [number, Buffer] {
    return [StunAttribute.XOR_MAPPED_ADDRESS, xorMappedAddress(this.#client.host, this.#client.port, transaction)];
  }
}

/** Throws ProtocolError if the address cannot be read. */
function peerOf({ attributes, transaction }: StunMessage): TurnAddress | undefined {
  const value = attributes.get(StunAttribute.XOR_PEER_ADDRESS);
  return value === undefined ? undefined : readXorMappedAddress(value, transaction);
}

/** Seconds: the requested lifetime, within our bounds; 0 ends the allocation. */
function lifetimeOf({ attributes }: StunMessage): number {
  const value = attributes.get(StunAttribute.LIFETIME);
  if (value === undefined) return LIFETIME_S;
  if (value.length !== 4) throw new ProtocolError('TURN_LIFETIME', `LIFETIME has ${value.length} bytes instead of 4`);
  const wanted = value.readUInt32BE();
  return wanted === 0 ? 0 : Math.min(LIFETIME_S, Math.max(MIN_LIFETIME_S, wanted));
}

function lifetimeAttribute(seconds: number): readonly [number, Buffer] {
  const value = Buffer.alloc(4);
  value.writeUInt32BE(seconds);
  return [StunAttribute.LIFETIME, value];
}

function dataIndication({ host, port }: TurnAddress, datagram: Uint8Array): Buffer {
  const transaction = randomBytes(12);
  const attributes = [
    [StunAttribute.XOR_PEER_ADDRESS, xorMappedAddress(host, port, transaction)],
    [StunAttribute.DATA, datagram],
  ] as const;
  return serializeStun({ type: StunType.DATA_INDICATION, transaction, attributes, password: null });
}

function keyOf({ host, port }: TurnAddress): string {
  return `${host} ${port}`;
}
