/** Whether the peer at the other end of a path has answered us, and how much may be sent there before. */

/**
 * Bytes sent to an unproven path for each byte received from it: the limit against reflection attacks that QUIC uses (RFC 9000 section 8).
 */
const AMPLIFICATION = 3;
/** Between the checks that a peer's own checks set off (Ta, RFC 8445 section 14.2), ms. */
const TRIGGER_GAP_MS = 50;
/** An unanswered check is followed by another after this (RTO, RFC 8445 section 14.3), ms. */
const RETRY_MS = 500;

export class PathProof {
  #received = 0;
  #sent = 0;
  #sentAt = Number.NEGATIVE_INFINITY;
  #nextAt = Number.POSITIVE_INFINITY;
  #provenAt = Number.NEGATIVE_INFINITY;

  /** When it answered last, ms; −∞ when it never did. */
  get provenAt(): number {
    return this.#provenAt;
  }

  /** True when it has answered, and consent to send to it is not withdrawn. */
  get isProven(): boolean {
    return this.#provenAt !== Number.NEGATIVE_INFINITY;
  }

  /** The peer's check of `received` bytes came, and `answered` bytes went back. `interval`: between checks of a path that has answered, ms. */
  heard(received: number, answered: number, interval: number): void {
    this.#received += received;
    this.#sent += answered;
    this.#nextAt = Math.min(this.#nextAt, this.#sentAt + (this.isProven ? interval : TRIGGER_GAP_MS));
  }

  /** True if a check of ours, of `bytes`, is to be sent now. */
  isDue(bytes: number, now: number): boolean {
    return now >= this.#nextAt && (this.isProven || this.#sent + bytes <= AMPLIFICATION * this.#received);
  }

  /** A check of ours was sent. `again`: when the next is due if the path has answered before, ms from now. */
  checked(bytes: number, now: number, again: number): void {
    this.#sent += bytes;
    this.#sentAt = now;
    this.#nextAt = now + (this.isProven ? again : RETRY_MS);
  }

  /** It has answered. The next check waits for one of the peer, or until it is scheduled. */
  proved(now: number): void {
    this.#provenAt = now;
    this.#nextAt = Number.POSITIVE_INFINITY;
  }

  /** A check is due at `at`, ms, whether the peer makes any or not. */
  schedule(at: number): void {
    this.#nextAt = Math.min(this.#nextAt, at);
  }

  /** No answer for too long: the path counts as unproven again. */
  expire(): void {
    this.#provenAt = Number.NEGATIVE_INFINITY;
    this.#received = 0;
    this.#sent = 0;
    this.#nextAt = Number.POSITIVE_INFINITY;
  }
}
