/** DTLS for the fanout in JavaScript, by `werift-dtls`. Ten times the CPU of the addon's. */
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import type { DtlsCertificate } from '../dtls/certificate.ts';
import { MASTER_KEY_LENGTH, type SrtpProfile, saltLength } from '../srtp/profile.ts';
import type { DtlsEndpoint, DtlsListener } from './fanout.ts';

/** The part of the library that is used; its own types need more than we have. */
interface LibraryEvent<T extends unknown[]> {
  subscribe(listener: (...values: T) => void): unknown;
}

interface LibrarySocket {
  readonly onConnect: LibraryEvent<[]>;
  readonly onError: LibraryEvent<[Error]>;
  readonly onClose: LibraryEvent<[]>;
  readonly srtp: { readonly srtpProfile?: number };
  readonly remoteCertificate: Buffer | undefined;
  extractSessionKeys(
    keyLength: number,
    saltLength: number,
  ): { readonly localKey: Buffer; readonly localSalt: Buffer; readonly remoteKey: Buffer; readonly remoteSalt: Buffer };
  connect?(): Promise<void>;
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

export class ScriptDtls implements DtlsEndpoint {
  readonly #listener: DtlsListener;
  readonly #transport: LibraryTransport;
  readonly #socket: LibrarySocket;
  #closed = false;

  constructor(role: 'client' | 'server', certificate: DtlsCertificate, listener: DtlsListener) {
    const { DtlsClient, DtlsServer } = loadLibrary();
    this.#listener = listener;
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
    this.#socket.onClose.subscribe(() => this.#end('the peer closed'));
    this.#socket.connect?.().catch((error: unknown) => this.#end(String(error)));
  }

  receive(datagram: Uint8Array): void {
    if (this.#closed) return;
    const records = wholeRecords(datagram);
    // The library fails at what is too short for a record, which anybody may send.
    if (records.length === 0) return;
    try {
      this.#transport.onData(Buffer.from(records));
    } catch (error) {
      this.#end(`the datagram is not DTLS: ${String(error)}`);
    }
  }

  /** The library has its own timers. */
  tick(): void {}

  close(): void {
    this.#closed = true;
  }

  #connected(): void {
    if (this.#closed) return;
    const profile = this.#socket.srtp.srtpProfile;
    const peer = this.#socket.remoteCertificate;
    if (profile === undefined || peer === undefined) {
      this.#end('the peer agreed to no SRTP profile, or showed no certificate');
      return;
    }
    const keys = this.#socket.extractSessionKeys(MASTER_KEY_LENGTH, saltLength(profile as SrtpProfile));
    this.#listener.connected({ ...keys, profile: profile as SrtpProfile }, createHash('sha256').update(peer).digest());
  }

  #end(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#listener.closed(reason);
  }
}

/** The records at the beginning of a datagram, without what is cut short behind them. */
function wholeRecords(datagram: Uint8Array): Uint8Array {
  let end = 0;
  while (end + RECORD_HEAD <= datagram.length) {
    const next = end + RECORD_HEAD + ((datagram[end + 11] ?? 0) << 8) + (datagram[end + 12] ?? 0);
    if (next > datagram.length) break;
    end = next;
  }
  return datagram.subarray(0, end);
}
