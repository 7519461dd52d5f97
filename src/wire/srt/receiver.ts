/** The receiving half of a connection: orders packets, acknowledges them, requests missing ones, and passes payloads on in time. */

import { ArrivalMeter } from './arrival-meter.ts';
import { serializeAck, serializeLightAck, serializeNak } from './control-packet.ts';
import { dataSequenceOf, HEADER_LENGTH, isRetransmitted, KeyFlag, keyFlagOf, MAX_PAYLOAD_LENGTH, timestampOf } from './header.ts';
import type { Link } from './link.ts';
import type { LossRange } from './loss-list.ts';
import { ReceiveBuffer } from './receive-buffer.ts';
import { addSequence } from './sequence.ts';
import { newReceiverStatistics } from './statistics.ts';
import type { TsbpdClock } from './tsbpd-clock.ts';

/** Time between full acknowledgements, µs: 10 ms (§3.2.4), minus a margin for sources that send every 10 ms, sometimes a little early. */
const ACK_INTERVAL = 9000;
/** Packets between light acknowledgements. */
const LIGHT_ACK_EVERY = 64;
/** Minimum time before losses are reported again, µs (§4.8.2). */
const MIN_NAK_INTERVAL = 20_000;
/** Limit of acknowledgements whose answers are awaited. */
const MAX_AWAITED_ACKS = 256;

/** A packet in the buffer whose key has not arrived. */
interface SealedPacket {
  readonly datagram: Uint8Array;
  readonly sequence: number;
  readonly dueTime: number;
}

/** The agreed terms of the handshake, and the receiver of payloads. */
export interface ReceiverOptions {
  readonly initialSequence: number;
  readonly clock: TsbpdClock;
  /** Packets kept, a power of two. */
  readonly bufferLimit: number;
  /** Gets every payload in order, once. */
  readonly onPayload: (payload: Uint8Array) => void;
}

/** Made by its connection. Memory is bounded by `bufferLimit`; late and repeated packets are counted. */
export class Receiver {
  readonly statistics = newReceiverStatistics();
  readonly #link: Link;
  readonly #buffer: ReceiveBuffer;
  readonly #clock: TsbpdClock;
  readonly #meter = new ArrivalMeter();
  readonly #deliver: (payload: Uint8Array) => void;
  readonly #ackTimes = new Float64Array(MAX_AWAITED_ACKS);
  readonly #ackNumbers = new Uint32Array(MAX_AWAITED_ACKS);
  /** At most the packets in the buffer. */
  #sealed: SealedPacket[] = [];
  #ackNumber = 0;
  #ackedSequence: number;
  #confirmedNumber = 0;
  #ackedAt = 0;
  #packetsSinceAck = 0;
  #nakAt = 0;

  constructor(link: Link, options: ReceiverOptions) {
    this.#link = link;
    this.#clock = options.clock;
    this.#buffer = new ReceiveBuffer(options.initialSequence, options.bufferLimit);
    this.#ackedSequence = options.initialSequence;
    this.#deliver = (payload) => {
      this.statistics.packetsDelivered += 1;
      this.statistics.bytesDelivered += payload.length;
      options.onPayload(payload);
    };
  }

  /** Time of the next `tick`, µs; infinite if none is needed. */
  get dueAt(): number {
    const { nextDueTime, missing } = this.#buffer;
    const nak = missing > 0 ? this.#nakAt + this.#nakInterval : Number.POSITIVE_INFINITY;
    return Math.min(nextDueTime, nak, this.#ackedAt + this.#ackInterval);
  }

  /** Packets held back until their time. */
  get backlog(): number {
    return this.#buffer.present;
  }

  /** Takes a data packet, whose buffer it keeps and decrypts in place. */
  receive(datagram: Uint8Array, now: number): void {
    const { statistics } = this;
    const buffer = this.#buffer;
    const sequence = dataSequenceOf(datagram);
    const again = isRetransmitted(datagram);
    statistics.packetsReceived += 1;
    if (again) statistics.packetsRetransmitted += 1;
    else this.#meter.count(sequence, datagram.length, now);
    if (datagram.length > HEADER_LENGTH + MAX_PAYLOAD_LENGTH) {
      statistics.packetsOversized += 1;
      return;
    }
    if (!buffer.reaches(sequence)) this.#skipTo(sequence);
    const expected = buffer.end;
    const missing = buffer.missing;
    const dueTime = this.#clock.dueTime(timestampOf(datagram), now);
    switch (buffer.insert(sequence, payloadOf(datagram), dueTime)) {
      case 'inserted':
        this.#decrypt(datagram, sequence, dueTime);
        break;
      case 'duplicate':
        statistics.packetsDuplicate += 1;
        return;
      case 'late':
        statistics.packetsBelated += 1;
        return;
      case 'too-far':
        statistics.packetsTooFar += 1;
        return;
    }
    if (buffer.missing > missing) {
      statistics.packetsLost += buffer.missing - missing;
      // The next periodic report, which repeats this loss, need not follow at once.
      if (now - this.#nakAt >= this.#nakInterval) this.#nakAt = now;
      this.#nak([{ first: expected, last: addSequence(sequence, -1) }], now);
    }
    this.#packetsSinceAck += 1;
    if (this.#packetsSinceAck >= LIGHT_ACK_EVERY) {
      this.#packetsSinceAck = 0;
      this.#link.sink.send(serializeLightAck(buffer.acknowledged, this.#link.address(now)), null);
    }
  }

  /** The peer answered an acknowledgement, which measures the round trip. `timestamp` is the peer's. */
  acknowledged(number: number, timestamp: number, now: number): void {
    const slot = number % MAX_AWAITED_ACKS;
    if (number === 0 || this.#ackNumbers[slot] !== number) return;
    this.#ackNumbers[slot] = 0;
    const sample = now - (this.#ackTimes[slot] ?? now);
    this.#link.rtt.measure(sample);
    this.#clock.measureDrift(now, timestamp, sample);
    if (number > this.#confirmedNumber) this.#confirmedNumber = number;
  }

  /** The peer will not retransmit these packets. */
  drop(range: LossRange): void {
    this.statistics.packetsDroppedLate += this.#buffer.giveUp(range);
  }

  /** Passes on due packets, acknowledges and requests missing packets; call it at `dueAt`. */
  tick(now: number): void {
    this.#unseal(now);
    this.statistics.packetsDroppedLate += this.#buffer.release(now, this.#deliver);
    if (now - this.#ackedAt >= this.#ackInterval) this.#ack(now);
    if (this.#buffer.missing > 0 && now - this.#nakAt >= this.#nakInterval) {
      this.#nakAt = now;
      this.#nak(this.#buffer.missingRanges(this.#buffer.acknowledged, MAX_PAYLOAD_LENGTH / 8), now);
    }
  }

  /** Passes everything on at once: no more packets will arrive. */
  flush(): void {
    this.#unseal(Number.POSITIVE_INFINITY);
    this.statistics.packetsDroppedLate += this.#buffer.release(Number.POSITIVE_INFINITY, this.#deliver);
  }

  /** After a long outage the sender is farther ahead than the buffer reaches: packets in between will not come. */
  #skipTo(sequence: number): void {
    const lost = this.#buffer.skipTo(sequence);
    if (lost > 0) this.statistics.packetsDroppedLate += lost;
  }

  #decrypt(datagram: Uint8Array, sequence: number, dueTime: number): void {
    const keyFlag = keyFlagOf(datagram);
    const { keys } = this.#link;
    if (keys === null ? keyFlag === KeyFlag.NONE : keys.decrypt(keyFlag, sequence, datagram, HEADER_LENGTH)) return;
    // The key may arrive later, because announcements are repeated.
    if (keys !== null && (keyFlag === KeyFlag.EVEN || keyFlag === KeyFlag.ODD)) this.#sealed.push({ datagram, sequence, dueTime });
    else this.#discard(sequence);
  }

  /** Decrypts packets whose keys have arrived, and gives up those that are due. */
  #unseal(now: number): void {
    if (this.#sealed.length === 0) return;
    this.#sealed = this.#sealed.filter(({ datagram, sequence, dueTime }) => {
      if (this.#link.keys?.decrypt(keyFlagOf(datagram), sequence, datagram, HEADER_LENGTH) === true) return false;
      if (dueTime <= now) this.#discard(sequence);
      return dueTime > now;
    });
  }

  #discard(sequence: number): void {
    this.statistics.packetsUndecryptable += 1;
    this.#buffer.discard(sequence);
  }

  /** Interval of full acknowledgements; longer while they only repeat an unconfirmed one. */
  get #ackInterval(): number {
    if (this.#buffer.acknowledged !== this.#ackedSequence) return ACK_INTERVAL;
    if (this.#confirmedNumber === this.#ackNumber) return Number.POSITIVE_INFINITY;
    return Math.max(ACK_INTERVAL, this.#link.rtt.upperBound);
  }

  /** Short: a lost report then costs little time, and senders know which packets are in flight. */
  get #nakInterval(): number {
    return Math.max(MIN_NAK_INTERVAL, this.#link.rtt.rtt / 4);
  }

  #ack(now: number): void {
    const sequence = this.#buffer.acknowledged;
    this.#ackedSequence = sequence;
    this.#ackedAt = now;
    this.#packetsSinceAck = 0;
    this.#ackNumber += 1;
    this.#ackTimes[this.#ackNumber % MAX_AWAITED_ACKS] = now;
    this.#ackNumbers[this.#ackNumber % MAX_AWAITED_ACKS] = this.#ackNumber;
    const { rtt } = this.#link;
    const report = {
      rtt: Math.round(rtt.rtt),
      rttVariance: Math.round(rtt.variance),
      availableBuffer: Math.max(2, this.#buffer.available),
      receiveRate: this.#meter.packetRate,
      linkCapacity: this.#meter.linkCapacity,
      receiveByteRate: this.#meter.byteRate,
    };
    this.#link.sink.send(serializeAck(this.#ackNumber, sequence, report, this.#link.address(now)), null);
  }

  #nak(ranges: readonly LossRange[], now: number): void {
    if (ranges.length > 0) this.#link.sink.send(serializeNak(ranges, MAX_PAYLOAD_LENGTH, this.#link.address(now)), null);
  }
}

/** Much cheaper than `subarray`. */
function payloadOf(datagram: Uint8Array): Uint8Array {
  return new Uint8Array(datagram.buffer, datagram.byteOffset + HEADER_LENGTH, datagram.length - HEADER_LENGTH);
}
