/**
 * AV1 temporal units into RTP payloads ("RTP Payload Format for AV1", version 1.0, section 4).
 *
 *      0 1 2 3 4 5 6 7
 *     |Z|Y| W |N|0 0 0|  Z, Y: the first / last unit continues from / in another packet; W: 0, each unit has its length before
 *                        it; N: a coded video sequence begins
 */
import { ObuCursor, ObuType } from '../../codecs/av1/obu.ts';
import { type Packetizer, PayloadBuffer, type Payloads } from './packetizer.ts';

const CONTINUES = 0x80;
const CONTINUED = 0x40;
const NEW_SEQUENCE = 0x08;
const AGGREGATION_HEAD = 1;
const EXTENSION_FLAG = 0x04;
const SIZE_FLAG = 0x02;
/** The length of one more fragment. */
const FRAGMENT_COST = 3;
/** OBUs that have no use over RTP. */
const SKIPPED: ReadonlySet<number> = new Set([ObuType.TEMPORAL_DELIMITER, ObuType.TILE_LIST, ObuType.PADDING]);

/** One unit in its form for RTP: its header without size, then its content. */
interface Unit {
  readonly data: Uint8Array;
  readonly start: number;
  readonly payload: number;
  /** Bytes of the header. */
  readonly head: number;
  readonly size: number;
}

/** Takes the units of a temporal unit one after the other, each with its size; the last unit may lack it. */
export class Av1Packetizer implements Packetizer {
  readonly #budget: number;
  readonly #out = new PayloadBuffer();
  #flags = 0;
  #isOpen = false;

  /** `budget`: bytes of the largest payload. */
  constructor(budget: number) {
    this.#budget = budget;
  }

  /**
   * Packets of equal size, which leave in one system call; a unit continues in the next packet wherever a packet ends. So no packet ends
   * with the sequence header: browsers take the end of a unit for the end of a frame.
   * `before`: a unit to send first (the sequence header for a keyframe without it).
   */
  packetize(frame: Uint8Array, keyframe = false, before: Uint8Array | null = null): Payloads {
    const units = [...(before === null ? [] : unitsOf(before)), ...unitsOf(frame)];
    let total = 0;
    for (const { size } of units) total += lebLength(size) + size;
    const count = Math.ceil(total / (this.#budget - AGGREGATION_HEAD));
    const share = Math.min(this.#budget, AGGREGATION_HEAD + Math.ceil(total / count) + (count > 1 ? FRAGMENT_COST : 0));
    this.#out.reset();
    this.#flags = keyframe ? NEW_SEQUENCE : 0;
    for (const unit of units) this.#write(unit, share);
    this.#finish();
    return this.#out.take();
  }

  #write(unit: Unit, share: number): void {
    for (let done = 0; done < unit.size; ) {
      if (!this.#isOpen) this.#begin(done > 0);
      const room = share - this.#out.current;
      const left = unit.size - done;
      const fits = lebLength(left) + left <= room;
      const piece = fits ? left : room - lebLength(room);
      if (piece > 0) {
        this.#leb(piece);
        this.#copy(unit, done, done + piece);
        done += piece;
        if (!fits) this.#flags |= CONTINUED;
      }
      if (!fits) this.#finish();
    }
  }

  #begin(continues: boolean): void {
    if (continues) this.#flags |= CONTINUES;
    this.#out.u8(0);
    this.#isOpen = true;
  }

  #finish(): void {
    if (!this.#isOpen) return;
    this.#out.patch(0, this.#flags);
    this.#out.finish();
    this.#flags = 0;
    this.#isOpen = false;
  }

  #copy({ data, start, payload, head }: Unit, from: number, to: number): void {
    for (let at = from; at < Math.min(head, to); at += 1) this.#out.u8((data[start + at] ?? 0) & (at === 0 ? ~SIZE_FLAG : 0xff));
    const first = Math.max(from, head);
    if (first < to) this.#out.append(data, payload + first - head, payload + to - head);
  }

  #leb(value: number): void {
    for (let rest = value; ; rest >>>= 7) {
      this.#out.u8(rest < 0x80 ? rest : (rest & 0x7f) | 0x80);
      if (rest < 0x80) return;
    }
  }
}

function unitsOf(data: Uint8Array): Unit[] {
  const units: Unit[] = [];
  const obu = new ObuCursor(data);
  while (obu.next()) {
    if (SKIPPED.has(obu.type)) continue;
    const head = ((data[obu.start] ?? 0) & EXTENSION_FLAG) === 0 ? 1 : 2;
    units.push({ data, start: obu.start, payload: obu.payload, head, size: head + obu.end - obu.payload });
  }
  return units;
}

function lebLength(value: number): number {
  return value < 0x80 ? 1 : value < 0x4000 ? 2 : 3;
}
