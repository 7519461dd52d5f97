/** Proof that the peer at the other end of a path answers, and the limit of bytes sent there before. */

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

  /** Time of the last answer, ms; −∞ before the first. */
  get provenAt(): number {
    return this.#provenAt;
  }

  /** The path has answered, and the consent to send to it has not been withdrawn. */
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

  /** A check of ours was sent. `again`: ms until the next check, if the path has answered before. */
  checked(bytes: number, now: number, again: number): void {
    this.#sent += bytes;
    this.#sentAt = now;
    this.#nextAt = now + (this.isProven ? again : RETRY_MS);
  }

  /** The path has answered. The next check follows a check of the peer, or `schedule`. */
  proved(now: number): void {
    this.#provenAt = now;
    this.#nextAt = Number.POSITIVE_INFINITY;
  }

  /** A check is due at `at`, ms, even if the peer sends none. */
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
