/**
 * DTLS for the fanout in JavaScript, with `werift-dtls`; ten times the CPU of the addon. The library does not verify the peer and fails on
 * arbitrary datagrams, so the proof (`dtls-proof.ts`) and the records after the handshake are checked here.
 */
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { messageOf } from '../../../../util/message-of.ts';
import { MASTER_KEY_LENGTH, type SrtpProfile, saltLength } from '../../../../wire/srtp/profile.ts';
import type { DtlsCertificate } from '../dtls-certificate.ts';
import type { DtlsEndpoint, DtlsListener } from '../fanout/fanout.ts';
import { type HandshakeMessage, provenCertificate } from './dtls-proof.ts';

/** The part of the library that is used; its own types need more than we have. */
interface LibraryEvent<T extends unknown[]> {
  subscribe(listener: (...values: T) => void): unknown;
}

interface LibrarySocket {
  readonly onConnect: LibraryEvent<[]>;
  readonly onError: LibraryEvent<[Error]>;
  readonly srtp: { readonly srtpProfile?: number };
  readonly sessionType: number;
  readonly dtls: { readonly sortedHandshakeCache: readonly HandshakeMessage[] };
  readonly cipher: {
    readonly masterSecret: Buffer;
    readonly localRandom: { serialize(): Buffer };
    readonly remoteRandom: { serialize(): Buffer };
    readonly remoteKeyPair?: { readonly publicKey: Buffer };
    /** The suite with its keys. */
    readonly cipher?: {
      decrypt(sessionType: number, fragment: Buffer, header: RecordHeader): Buffer;
      encrypt(sessionType: number, plain: Buffer, header: RecordHeader): Buffer;
    };
  };
  /** Takes messages that are complete. */
  onHandleHandshakes: (messages: readonly HandshakeMessage[]) => Promise<void>;
  extractSessionKeys(
    keyLength: number,
    saltLength: number,
  ): { readonly localKey: Buffer; readonly localSalt: Buffer; readonly remoteKey: Buffer; readonly remoteSalt: Buffer };
  connect?(): Promise<void>;
}

interface RecordHeader {
  readonly type: number;
  readonly version: number;
  readonly epoch: number;
  readonly sequenceNumber: number;
}

interface LibraryTransport {
  onData: (datagram: Buffer) => void;
  send(datagram: Buffer): Promise<void>;
  close(): Promise<void>;
}

type LibraryClass = new (options: {
  readonly transport: LibraryTransport;
  readonly cert: string;
  readonly key: string;
  readonly signatureHash: { readonly hash: number; readonly signature: number };
  readonly srtpProfiles: readonly number[];
  readonly certificateRequest: boolean;
  readonly extendedMasterSecret: boolean;
}) => LibrarySocket;

/** Its `main` names a file that is not in the package. */
const LIBRARY = 'werift-dtls/lib/dtls/src/index.js';
const SHA256 = 4;
const ECDSA = 3;
const PROFILES = [7, 1];
/** Type, version, epoch, sequence number and length of a record (RFC 6347 section 4.1). */
const RECORD_HEAD = 13;
const DTLS_1_2 = 0xfefd;
/** The sequence number of our goodbye: the library has counted a few records, so this one was never used. */
const LAST_SEQUENCE = 0x1_0000;
const ContentType = { ALERT: 21, HANDSHAKE: 22 } as const;
const WARNING = 1;
const FATAL = 2;
const CLOSE_NOTIFY = 0;
const FINISHED = 20;
/** A client that missed the last flight this often will not get it, and the limit prevents reflection. */
const MAX_RESENDS = 16;

interface Library {
  readonly DtlsServer: LibraryClass;
  readonly DtlsClient: LibraryClass;
}

let library: Library | null = null;

/** Loads the library. Throws with a sentence when it is not installed. */
function loadLibrary(): Library {
  try {
    library ??= createRequire(import.meta.url)(LIBRARY) as Library;
    return library;
  } catch (error) {
    throw new Error('DTLS without the native addon needs the package werift-dtls, which is not installed', { cause: error });
  }
}

/** One handshake. Its owner passes it datagrams and closes it; the listener gets no calls afterwards. */
export class ScriptDtls implements DtlsEndpoint {
  readonly #listener: DtlsListener;
  readonly #transport: LibraryTransport;
  readonly #socket: LibrarySocket;
  readonly #role: 'client' | 'server';
  #serverFinished: Buffer | null = null;
  #isConnected = false;
  #resent = 0;
  #closed = false;

  constructor(role: 'client' | 'server', certificate: DtlsCertificate, listener: DtlsListener) {
    const { DtlsClient, DtlsServer } = loadLibrary();
    this.#listener = listener;
    this.#role = role;
    this.#transport = {
      onData: () => undefined,
      send: async (datagram) => {
        if (!this.#closed) listener.send(datagram);
      },
      close: async () => undefined,
    };
    this.#socket = new (role === 'server' ? DtlsServer : DtlsClient)({
      transport: this.#transport,
      cert: certificate.certificate,
      key: certificate.key,
      signatureHash: { hash: SHA256, signature: ECDSA },
      srtpProfiles: PROFILES,
      certificateRequest: true,
      extendedMasterSecret: true,
    });
    this.#socket.onConnect.subscribe(() => this.#connected());
    this.#socket.onError.subscribe((error) => this.#end(String(error)));
    const take = this.#socket.onHandleHandshakes;
    this.#socket.onHandleHandshakes = async (messages) => {
      if (role === 'client') this.#serverFinished ??= messages.find(({ msg_type }) => msg_type === FINISHED)?.fragment ?? null;
      await take(messages);
    };
    this.#socket.connect?.().catch((error: unknown) => this.#end(String(error)));
  }

  receive(datagram: Uint8Array): void {
    for (const record of recordsOf(Buffer.from(datagram))) {
      if (this.#closed) return;
      if (this.#isConnected) this.#afterwards(record);
      else if (record[0] === ContentType.ALERT)
        this.#alert(record.readUInt16BE(3) === 0 ? record.subarray(RECORD_HEAD) : this.#open(record));
      else this.#handshake(record);
    }
  }

  #handshake(record: Buffer): void {
    try {
      this.#transport.onData(record);
    } catch (error) {
      this.#end(`the datagram is not DTLS: ${String(error)}`);
    }
  }

  /** Once connected the peer only ends the connection, or asks for our last flight again; both are encrypted. */
  #afterwards(record: Buffer): void {
    const plain = this.#open(record);
    if (plain === null) return;
    if (record[0] === ContentType.ALERT) this.#alert(plain);
    else if (record[0] === ContentType.HANDSHAKE && this.#role === 'server' && this.#resent < MAX_RESENDS) {
      this.#resent += 1;
      this.#handshake(record);
    }
  }

  #alert(alert: Buffer | null): void {
    if (alert === null || alert.length < 2) return;
    if (alert[1] === CLOSE_NOTIFY) this.#end('the peer closed');
    else if (alert[0] === FATAL) this.#end(`the peer sent alert ${alert[1]}`);
  }

  /** Contents of an encrypted record; null if it is not the peer's. */
  #open(record: Buffer): Buffer | null {
    const { cipher, sessionType } = this.#socket;
    const suite = cipher.cipher;
    if (suite === undefined || record.readUInt16BE(3) !== 1) return null;
    const header = { type: record.readUInt8(0), version: record.readUInt16BE(1), epoch: 1, sequenceNumber: record.readUIntBE(5, 6) };
    try {
      // `decrypt` writes into its input.
      return suite.decrypt(sessionType, Buffer.from(record.subarray(RECORD_HEAD)), header);
    } catch {
      return null;
    }
  }

  /** The library has its own timers. */
  tick(): void {}

  close(): void {
    if (this.#closed) return;
    if (this.#isConnected) this.#sayGoodbye();
    this.#closed = true;
  }

  /** The library sends no close_notify. It is encrypted, so no third party can end the connection. */
  #sayGoodbye(): void {
    const { cipher, sessionType } = this.#socket;
    const header = { type: ContentType.ALERT, version: DTLS_1_2, epoch: 1, sequenceNumber: LAST_SEQUENCE };
    const sealed = cipher.cipher?.encrypt(sessionType, Buffer.of(WARNING, CLOSE_NOTIFY), header);
    if (sealed === undefined) return;
    const head = Buffer.alloc(RECORD_HEAD);
    head.writeUInt8(header.type);
    head.writeUInt16BE(header.version, 1);
    head.writeUInt16BE(header.epoch, 3);
    head.writeUIntBE(header.sequenceNumber, 5, 6);
    head.writeUInt16BE(sealed.length, 11);
    this.#listener.send(Buffer.concat([head, sealed]));
  }

  #connected(): void {
    // The library reports the connection again when the peer asks for the last flight.
    if (this.#closed || this.#isConnected) return;
    const profile = this.#socket.srtp.srtpProfile;
    if (profile === undefined) {
      this.#end('the peer agreed to no SRTP profile');
      return;
    }
    let certificate: Buffer;
    try {
      certificate = this.#proven();
    } catch (error) {
      this.#end(messageOf(error));
      return;
    }
    this.#isConnected = true;
    const keys = this.#socket.extractSessionKeys(MASTER_KEY_LENGTH, saltLength(profile as SrtpProfile));
    this.#listener.connected({ ...keys, profile: profile as SrtpProfile }, createHash('sha256').update(certificate).digest());
  }

  #proven(): Buffer {
    const { dtls, cipher } = this.#socket;
    const [own, theirs] = [cipher.localRandom.serialize(), cipher.remoteRandom.serialize()];
    return provenCertificate({
      role: this.#role,
      messages: dtls.sortedHandshakeCache,
      serverFinished: this.#serverFinished,
      masterSecret: cipher.masterSecret,
      clientRandom: this.#role === 'client' ? own : theirs,
      serverRandom: this.#role === 'client' ? theirs : own,
      peerKey: cipher.remoteKeyPair?.publicKey ?? Buffer.alloc(0),
    });
  }

  #end(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#listener.closed(reason);
  }
}

/** The complete records of a datagram: the library fails on a truncated record, which anyone could send. */
function* recordsOf(datagram: Buffer): Generator<Buffer> {
  for (let at = 0; at + RECORD_HEAD <= datagram.length; ) {
    const end = at + RECORD_HEAD + datagram.readUInt16BE(at + 11);
    if (end > datagram.length) return;
    yield datagram.subarray(at, end);
    at = end;
  }
}
