import { KeyFlag } from './header.ts';
import type { PayloadCipher } from './payload-cipher.ts';
import { addSequence, sequenceOffset } from './sequence.ts';

/** Packets after its last use, after which a replaced key is forgotten: more than any buffer spans. */
const FORGOTTEN_AFTER = 2 ** 20;
const NONE = -1;

/** A stream key. */
export interface StreamKey {
  readonly bytes: Uint8Array;
  readonly cipher: PayloadCipher;
}

/** The successive keys under one flag. Sequence numbers are `NONE` while unknown. */
interface Slot {
  key: StreamKey | null;
  /** Packets after this one have `key`. */
  from: number;
  /** The newest packet that had `key`. */
  used: number;
  /** A packet with the other flag: the turn of `key` ended before it. */
  end: number;
  /** The previous key, for packets up to `beforeEnd` that come late. */
  before: StreamKey | null;
  beforeEnd: number;
  /** The newest packet with the flag. */
  seen: number;
}

/**
 * The keys with which a peer encrypts. Packets name only the slot of their key, even or odd. A sender changes between the slots, so a slot has
 * another key at each turn, and the sequence number of a packet decides which one. A key may come before the last packets of the key that it
 * replaces, and behind the first packets of its own.
 */
export class ReceivingKeys {
  readonly #even: Slot = newSlot();
  readonly #odd: Slot = newSlot();

  /** Takes a key that the peer has announced; one that is there already changes nothing. `flag` is `EVEN` or `ODD`. */
  set(flag: KeyFlag, key: StreamKey): void {
    const [slot, other] = flag === KeyFlag.EVEN ? [this.#even, this.#odd] : [this.#odd, this.#even];
    if (slot.key !== null && Buffer.compare(slot.key.bytes, key.bytes) === 0) return;
    const from = isNewer(other.seen, slot.used) ? other.seen : slot.used;
    if (slot.used !== NONE) {
      slot.before = slot.key;
      slot.beforeEnd = slot.end === NONE ? addSequence(from, 1) : slot.end;
    }
    slot.key = key;
    slot.from = from;
    slot.used = NONE;
    slot.end = NONE;
  }

  /** The key of a packet; null if it has not come, or the flag names none. */
  of(flag: number, sequence: number): StreamKey | null {
    if (flag === KeyFlag.EVEN) return choose(this.#even, this.#odd, sequence);
    return flag === KeyFlag.ODD ? choose(this.#odd, this.#even, sequence) : null;
  }
}

function newSlot(): Slot {
  return { key: null, from: NONE, used: NONE, end: NONE, before: null, beforeEnd: NONE, seen: NONE };
}

function choose(slot: Slot, other: Slot, sequence: number): StreamKey | null {
  if (isNewer(sequence, slot.seen)) slot.seen = sequence;
  const isBehindOther = other.used !== NONE && isNewer(sequence, other.used);
  if (isBehindOther && (other.end === NONE || isNewer(other.end, sequence))) other.end = sequence;
  if (slot.from !== NONE && sequenceOffset(slot.from, sequence) > FORGOTTEN_AFTER) {
    slot.from = NONE;
    slot.before = null;
  }
  if (!isNewer(sequence, slot.from)) return slot.before !== null && isNewer(slot.beforeEnd, sequence) ? slot.before : null;
  // After a turn of the other slot this slot has another key.
  if (slot.end !== NONE && isNewer(sequence, slot.end)) return null;
  if (slot.key !== null && isNewer(sequence, slot.used)) slot.used = sequence;
  return slot.key;
}

/** Whether `sequence` is after `than`; every number is after `NONE`. */
function isNewer(sequence: number, than: number): boolean {
  if (sequence === NONE || than === NONE) return sequence !== NONE;
  return sequenceOffset(than, sequence) > 0;
}
