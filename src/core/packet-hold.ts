import type { Packet } from '../media/packet.ts';
import { toSeconds } from '../media/timebase.ts';

/** Limits of a hold: the first one reached ends the wait. */
const MAX_SECONDS = 5;
const MAX_PACKETS = 4000;
const MAX_BYTES = 64 * 1024 * 1024;

/** Packets that wait for their stream to begin. Drops nothing: a full hold tells its owner, who must begin with the present tracks. */
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
    return this.heavy || this.#to - this.#from >= MAX_SECONDS;
  }

  /** It is full, regardless of the packets' times. */
  get heavy(): boolean {
    return this.size >= MAX_PACKETS || this.#bytes >= MAX_BYTES;
  }

  push(packet: Packet): void {
    const at = toSeconds(packet.dts, packet.track.timebase);
    if (at < this.#from) this.#from = at;
    if (at > this.#to) this.#to = at;
    this.#bytes += packet.data.length;
    this.#packets.push(packet);
  }

  /** Puts the packets in the order of their decoding times, as if all tracks had arrived together. */
  sort(): void {
    const seconds = new Map(this.#packets.map((packet) => [packet, toSeconds(packet.dts, packet.track.timebase)]));
    this.#packets.sort((a, b) => (seconds.get(a) ?? 0) - (seconds.get(b) ?? 0));
  }

  /** Takes the oldest packet, or undefined when there is none. */
  shift(): Packet | undefined {
    const packet = this.#packets[this.#next];
    if (packet === undefined) return undefined;
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
