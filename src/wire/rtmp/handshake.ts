/** RTMP handshake, both roles, simple and digest (RTMP 1.0 §5.2). */
import { randomFillSync } from 'node:crypto';
import { ProtocolError } from '../../util/protocol-error.ts';
import {
  CLIENT_KEYS,
  findDigest,
  HANDSHAKE_BLOCK_LENGTH,
  SERVER_KEYS,
  signAnswerBlock,
  signFirstBlock,
  verifyAnswerBlock,
} from './handshake-digest.ts';

const VERSION = 3;
const ZERO_OFFSET = 4;
const RANDOM_OFFSET = 8;
const HELLO_LENGTH = 1 + HANDSHAKE_BLOCK_LENGTH;
/** Software version in the first block of a digest handshake: with zero, peers take it for a simple handshake. */
const SERVER_DIGEST_VERSION = 0x0401_0001;
const CLIENT_DIGEST_VERSION = 0x0900_7c02;

/** A handshake's result for received bytes. */
export interface HandshakeStep {
  /** Bytes taken; the rest belongs to the chunk stream. */
  readonly consumed: number;
  /** To be sent now, or null. */
  readonly reply: Buffer | null;
}

/** Server side: waits for C0 C1, answers S0 S1 S2, waits for C2. C2 is not checked: clients send all kinds. */
export class ServerHandshake {
  readonly #staging = Buffer.allocUnsafe(HELLO_LENGTH);
  #staged = 0;
  #state: 'hello' | 'answer' | 'done' = 'hello';
  #digest = false;

  get done(): boolean {
    return this.#state === 'done';
  }

  /** True when the client signed its block and got signed ones. */
  get usedDigest(): boolean {
    return this.#digest;
  }

  /** Throws `ProtocolError` when the peer does not speak RTMP. */
  push(data: Buffer): HandshakeStep {
    if (this.#state === 'done') return { consumed: 0, reply: null };
    if (this.#state === 'hello' && this.#staged === 0 && data.length > 0) requireVersion(data.readUInt8(0));
    let consumed = this.#stage(data, 0);
    let reply: Buffer | null = null;
    if (this.#state === 'hello' && this.#staged === HELLO_LENGTH) {
      reply = this.#answerHello(this.#staging.subarray(1));
      this.#state = 'answer';
      this.#staged = 0;
      consumed += this.#stage(data, consumed);
    }
    if (this.#state === 'answer' && this.#staged === HANDSHAKE_BLOCK_LENGTH) this.#state = 'done';
    return { consumed, reply };
  }

  #stage(data: Buffer, from: number): number {
    const wanted = (this.#state === 'hello' ? HELLO_LENGTH : HANDSHAKE_BLOCK_LENGTH) - this.#staged;
    const copied = data.copy(this.#staging, this.#staged, from, Math.min(data.length, from + wanted));
    this.#staged += copied;
    return copied;
  }

  #answerHello(clientBlock: Buffer): Buffer {
    const reply = Buffer.alloc(HELLO_LENGTH + HANDSHAKE_BLOCK_LENGTH);
    reply.writeUInt8(VERSION, 0);
    const first = reply.subarray(1, HELLO_LENGTH);
    const answer = reply.subarray(HELLO_LENGTH);
    randomFillSync(first, RANDOM_OFFSET);
    const found = clientBlock.readUInt32BE(ZERO_OFFSET) === 0 ? null : findDigest(clientBlock, CLIENT_KEYS.first);
    if (found === null) {
      clientBlock.copy(answer);
      return reply;
    }
    this.#digest = true;
    first.writeUInt32BE(SERVER_DIGEST_VERSION, ZERO_OFFSET);
    signFirstBlock(first, found.layout, SERVER_KEYS.first);
    randomFillSync(answer);
    signAnswerBlock(answer, found.digest, SERVER_KEYS.answer);
    return reply;
  }
}

/** Client side: send `hello` first; then it waits for S0 S1 S2 and answers with C2. */
export class ClientHandshake {
  /** C0 and C1, to be sent once. */
  readonly hello = Buffer.alloc(HELLO_LENGTH);
  readonly #staging = Buffer.allocUnsafe(HELLO_LENGTH + HANDSHAKE_BLOCK_LENGTH);
  readonly #digest: Buffer | null;
  #staged = 0;
  #done = false;
  #serverSigned = false;

  constructor(options: { variant: 'simple' | 'digest' }) {
    const first = this.hello.subarray(1);
    this.hello.writeUInt8(VERSION, 0);
    randomFillSync(first, RANDOM_OFFSET);
    if (options.variant === 'digest') first.writeUInt32BE(CLIENT_DIGEST_VERSION, ZERO_OFFSET);
    this.#digest = options.variant === 'digest' ? signFirstBlock(first, 1, CLIENT_KEYS.first) : null;
  }

  get done(): boolean {
    return this.#done;
  }

  /** True when the server answered a signed block with signed ones. */
  get usedDigest(): boolean {
    return this.#serverSigned;
  }

  /** Throws `ProtocolError` when the peer does not speak RTMP or its signature is wrong. */
  push(data: Buffer): HandshakeStep {
    if (this.#done) return { consumed: 0, reply: null };
    if (this.#staged === 0 && data.length > 0) requireVersion(data.readUInt8(0));
    const consumed = data.copy(this.#staging, this.#staged);
    this.#staged += consumed;
    if (this.#staged < this.#staging.length) return { consumed, reply: null };
    this.#done = true;
    return { consumed, reply: this.#answer(this.#staging.subarray(1, HELLO_LENGTH), this.#staging.subarray(HELLO_LENGTH)) };
  }

  #answer(serverBlock: Buffer, serverAnswer: Buffer): Buffer {
    const found = this.#digest === null ? null : findDigest(serverBlock, SERVER_KEYS.first);
    if (this.#digest === null || found === null) return Buffer.from(serverBlock);
    if (!verifyAnswerBlock(serverAnswer, this.#digest, SERVER_KEYS.answer)) {
      throw new ProtocolError('RTMP_HANDSHAKE_DIGEST', 'the server did not sign the digest of the client');
    }
    this.#serverSigned = true;
    const reply = randomFillSync(Buffer.allocUnsafe(HANDSHAKE_BLOCK_LENGTH));
    signAnswerBlock(reply, found.digest, CLIENT_KEYS.answer);
    return reply;
  }
}

function requireVersion(version: number): void {
  if (version !== VERSION) throw new ProtocolError('RTMP_VERSION', `handshake must start with version ${VERSION}, got ${version}`, 0);
}
