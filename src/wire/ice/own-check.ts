/** Our own connectivity checks: whether a peer is at its address, and still consents to receive (RFC 8445 section 7.2.2, RFC 7675). */
import { randomBytes } from 'node:crypto';
import { StunAttribute, StunType, serializeStun } from '../stun/stun-message.ts';
import type { IceCredentials } from './ice-credentials.ts';

/** Priority of a peer-reflexive candidate of one component (RFC 8445 section 5.1.2.1); no peer compares it. */
const PRIORITY = 110 * 2 ** 24 + 65_535 * 2 ** 8 + 255;
const TRANSACTION_LENGTH = 12;
const TIE_BREAKER_LENGTH = 8;

/** A binding request of this server, ready to be sent (RFC 8445 §7.2). */
export interface CheckOfOurs {
  /** 96 random bits: a response that contains them proves that the peer received the check. */
  readonly transaction: Buffer;
  readonly datagram: Buffer;
}

/** Makes the checks of one session. */
export class CheckWriter {
  readonly #username: Buffer;
  readonly #password: string;
  readonly #priority = Buffer.alloc(4);
  /**
   * Decides conflicts of roles (RFC 8445 section 7.3.1.1): a peer with the same role refuses the check. Constant, because our role never
   * changes.
   */
  readonly #tieBreaker = randomBytes(TIE_BREAKER_LENGTH);
  /** Bytes of each check. */
  readonly length: number;

  constructor(ours: IceCredentials, theirs: IceCredentials) {
    this.#username = Buffer.from(`${theirs.ufrag}:${ours.ufrag}`);
    this.#password = theirs.password;
    this.#priority.writeUInt32BE(PRIORITY);
    this.length = this.write().datagram.length;
  }

  write(): CheckOfOurs {
    const transaction = randomBytes(TRANSACTION_LENGTH);
    const datagram = serializeStun({
      type: StunType.BINDING_REQUEST,
      transaction,
      attributes: [
        [StunAttribute.USERNAME, this.#username],
        // A lite agent is always the controlled one (RFC 8445 section 6.1.1).
        [StunAttribute.ICE_CONTROLLED, this.#tieBreaker],
        [StunAttribute.PRIORITY, this.#priority],
      ],
      password: this.#password,
    });
    return { transaction, datagram };
  }
}

/** Key of a transaction in maps. */
export function transactionKey(transaction: Buffer): string {
  return transaction.toString('latin1');
}
