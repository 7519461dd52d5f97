import type { Packet } from '../media/packet.ts';
import { toSeconds } from '../media/timebase.ts';

/** Limits of a hold: the first one reached ends the wait. */
const MAX_SECONDS = 5;
const MAX_PACKETS = 4000;
const MAX_BYTES = 64 * 1024 * 1024;

/** Packets that wait for their stream to begin. Drops nothing: a full hold notifies its owner, who must begin with the present tracks. */
export class PacketHold {
  #packets: Packet[] = [];
  #next = 0;
  #bytes = 0;
  /** Media time of the oldest and newest packet, seconds. */
  #from = Number.POSITIVE_INFINITY;
  #to = Number.NEGATIVE_INFINITY;

  get size(): number {
    return this.#packets.length - this.#next;
  }

  get full(): boolean {
    return this.heavy || this.seconds >= MAX_SECONDS;
  }

  /** Media time between the oldest and the newest packet; negative when there is none. */
  get seconds(): number {
    return this.#to - this.#from;
  }

  /** It is full, regardless of the packets' times. */
  get heavy(): boolean {
    return this.size >= MAX_PACKETS || this.#bytes >= MAX_BYTES;
  }

  push(packet: Packet): void {
    const at = timeOf(packet);
    if (at < this.#from) this.#from = at;
    if (at > this.#to) this.#to = at;
    this.#bytes += packet.data.length;
    this.#packets.push(packet);
  }

  /** Puts the packets in the order of their decoding times, as if all tracks had arrived together. */
  sort(): void {
    const packets = this.#packets.slice(this.#next);
    const seconds = new Map(packets.map((packet) => [packet, timeOf(packet)]));
    this.#packets = packets.sort((a, b) => (seconds.get(a) ?? 0) - (seconds.get(b) ?? 0));
    this.#next = 0;
    const [oldest] = packets;
    if (oldest !== undefined) this.#from = timeOf(oldest);
  }

  /** Takes the oldest packet, or undefined when there is none whose media time is less than `before`, seconds; default: any. */
  shift(before = Number.POSITIVE_INFINITY): Packet | undefined {
    const packet = this.#packets[this.#next];
    if (packet === undefined || (before !== Number.POSITIVE_INFINITY && timeOf(packet) >= before)) return undefined;
    this.#next += 1;
    this.#bytes -= packet.data.length;
    if (this.#next === this.#packets.length) this.clear();
    return packet;
  }

  clear(): void {
    this.#packets = [];
    this.#next = 0;
    this.#bytes = 0;
    this.#from = Number.POSITIVE_INFINITY;
    this.#to = Number.NEGATIVE_INFINITY;
  }
}

function timeOf({ dts, track }: Packet): number {
  return toSeconds(dts, track.timebase);
}
