/** The sending half of a connection: numbers packets, paces, repeats and drops them. */
import { type LinkReport, serializeDropRequest } from './control-packet.ts';
import { HEADER_LENGTH, KeyFlag, MESSAGE_NUMBER_MASK, markRetransmitted, writeDataHeader } from './header.ts';
import type { Link } from './link.ts';
import type { SendBandwidth } from './live-pacer.ts';
import { LivePacer } from './live-pacer.ts';
import type { LossRange } from './loss-list.ts';
import { SendBuffer } from './send-buffer.ts';
import { addSequence, sequenceOffset } from './sequence.ts';
import { newSenderStatistics } from './statistics.ts';

/** Minimum time for which a packet is worth sending, µs. */
const MIN_LIFE = 1_000_000;
/** Margin on top of the peer's latency: two acknowledgement periods, µs. */
const LIFE_MARGIN = 20_000;
/** Minimum retransmission timeout, µs. */
const MIN_TIMEOUT = 50_000;
/** Limit of copies of one retransmission. */
const MAX_COPIES = 3;
/** Limit of doublings of the timeout while nothing is acknowledged. */
const MAX_BACKOFF = 5;

/** The agreed terms of the handshake, and our own limits. */
export interface SenderOptions {
  readonly initialSequence: number;
  /** The peer's latency, µs: older packets are useless to it. */
  readonly peerLatency: number;
  /** The peer skips packets that it gave up, so the sender may drop them. */
  readonly tooLateDrop: boolean;
  /** Packets that the peer can hold. */
  readonly flowWindow: number;
  /** Packets kept, a power of two. */
  readonly bufferLimit: number;
  readonly bandwidth: SendBandwidth;
}

/** Made by its connection. Memory is bounded by `bufferLimit`; payloads that find no room are refused and counted. */
export class Sender {
  readonly statistics = newSenderStatistics();
  readonly #link: Link;
  readonly #buffer: SendBuffer;
  readonly #pacer: LivePacer;
  readonly #life: number;
  readonly #tooLateDrop: boolean;
  #window: number;
  #message = 1;
  #backoff = 0;
  #progressAt = 0;

  constructor(link: Link, options: SenderOptions) {
    this.#link = link;
    this.#buffer = new SendBuffer(options.initialSequence, options.bufferLimit);
    this.#pacer = new LivePacer(options.bandwidth);
    this.#life = Math.max(MIN_LIFE, options.peerLatency) + LIFE_MARGIN;
    this.#tooLateDrop = options.tooLateDrop;
    this.#window = options.flowWindow;
  }

  /** Packets waiting: not sent yet or not acknowledged. */
  get backlog(): number {
    return this.#buffer.length;
  }

  /** Time of the next `tick`, µs; infinite if none is needed. */
  get dueAt(): number {
    const buffer = this.#buffer;
    if (buffer.length === 0) return Number.POSITIVE_INFINITY;
    const late = this.#tooLateDrop ? buffer.firstOrigin + this.#life : Number.POSITIVE_INFINITY;
    const waits = buffer.lostCount > 0 || (buffer.unsent !== buffer.end && buffer.inFlight < Math.max(1, this.#window));
    if (waits) return Math.min(late, this.#pacer.nextAt);
    return buffer.inFlight === 0 ? late : Math.min(late, Math.max(buffer.firstSentAt, this.#progressAt) + this.#timeout);
  }

  /** Takes a payload; false, and counted, when the buffer is full. The payload must not change afterwards. */
  push(payload: Uint8Array, now: number): boolean {
    this.#dropLate(now);
    if (this.#buffer.full) {
      this.statistics.packetsRefused += 1;
      return false;
    }
    const { keys } = this.#link;
    const sequence = this.#buffer.end;
    const keyFlag = keys === null ? KeyFlag.NONE : keys.keyFlag;
    const body = keys === null ? payload : keys.encrypt(sequence, payload);
    const { timestamp, destination } = this.#link.address(now);
    const at = this.#buffer.add(body, now);
    writeDataHeader(this.#buffer.headers, at, { sequence, message: this.#message, keyFlag, timestamp, destination });
    this.#message = this.#message === MESSAGE_NUMBER_MASK ? 1 : this.#message + 1;
    this.#pacer.countInput(payload.length, now);
    this.transmit(now);
    return true;
  }

  /** Everything before `sequence` has arrived. An acknowledgement of unsent packets is ignored. */
  acknowledge(sequence: number, report: LinkReport | null, now: number): void {
    if (sequenceOffset(sequence, this.#buffer.unsent) < 0) return;
    if (report !== null) {
      this.#window = report.availableBuffer;
      this.#link.rtt.adopt(report.rtt, report.rttVariance);
    }
    if (sequenceOffset(this.#buffer.first, sequence) > 0) {
      this.#buffer.release(sequence);
      this.#backoff = 0;
      this.#progressAt = now;
    }
    this.transmit(now);
  }

  /** The peer misses packets. Ranges that overlap earlier ranges of the report are ignored: they could repeat everything many times. */
  reportLost(ranges: readonly LossRange[], now: number): void {
    const { first } = this.#buffer;
    let behind = Number.NEGATIVE_INFINITY;
    let gone = false;
    for (const range of ranges) {
      if (sequenceOffset(first, range.first) <= behind) continue;
      behind = sequenceOffset(first, range.last);
      // One drop request for each report: the next report repeats the other ranges.
      gone = this.#reportRange(range, { tellGone: !gone, now }) || gone;
    }
    this.transmit(now);
  }

  /** Sends the packets that may leave now; call it at `dueAt`. */
  tick(now: number): void {
    this.#dropLate(now);
    this.#repeatSilent(now);
    this.transmit(now);
  }

  /** Lost packets first, then new ones, as far as pace and window allow. */
  transmit(now: number): void {
    const buffer = this.#buffer;
    while (this.#pacer.mayStart(now)) {
      const lost = buffer.firstLost();
      if (lost >= 0) {
        this.#send(lost, now);
      } else if (buffer.unsent !== buffer.end && buffer.inFlight < Math.max(1, this.#window)) {
        this.#send(buffer.unsent, now);
      } else {
        return;
      }
      this.#pacer.started(now);
    }
  }

  #send(sequence: number, now: number): void {
    const { headers } = this.#buffer;
    const at = this.#buffer.headerOffset(sequence);
    const payload = this.#buffer.payload(sequence);
    const again = this.#buffer.sendings(sequence) > 0;
    if (again) {
      markRetransmitted(headers, at);
      this.statistics.packetsRetransmitted += 1;
    } else {
      this.statistics.packetsSent += 1;
      this.statistics.bytesSent += payload.length;
    }
    const header = new Uint8Array(headers.buffer, headers.byteOffset + at, HEADER_LENGTH);
    // A packet that should have been repaired a round trip ago has little time left: further copies save another one.
    const roundTrips = (now - this.#buffer.origin(sequence)) / this.#link.rtt.rtt;
    const copies = again ? Math.min(MAX_COPIES, Math.max(1, Math.round(roundTrips))) : 1;
    for (let copy = 1; copy < copies; copy += 1) {
      this.statistics.packetsRetransmitted += 1;
      this.#link.sink.send(header, payload);
    }
    this.#buffer.markSent(sequence, now);
    this.#link.sink.send(header, payload);
  }

  /** True if packets of the range are no longer kept. */
  #reportRange({ first, last }: LossRange, { tellGone, now }: { tellGone: boolean; now: number }): boolean {
    const buffer = this.#buffer;
    const from = sequenceOffset(buffer.first, first);
    // A packet that was never sent cannot be lost.
    const to = Math.min(sequenceOffset(buffer.first, last), buffer.inFlight - 1);
    const isGone = from < 0 && to >= from;
    if (isGone && tellGone) {
      const gone = { first, last: addSequence(buffer.first, Math.min(to, -1)) };
      this.#link.sink.send(serializeDropRequest(0, gone, this.#link.address(now)), null);
    }
    for (let offset = Math.max(0, from); offset <= to; offset += 1) {
      const sequence = addSequence(buffer.first, offset);
      // A report does not count while the retransmission is under way.
      const underWay = buffer.sendings(sequence) > 1 && now - buffer.sentAt(sequence) < this.#link.rtt.rtt;
      if (underWay) continue;
      this.statistics.packetsReportedLost += 1;
      buffer.markLost(sequence);
    }
    return isGone;
  }

  /** Drops packets that the peer has given up by now. */
  #dropLate(now: number): void {
    const buffer = this.#buffer;
    if (!this.#tooLateDrop || buffer.length === 0 || now - buffer.firstOrigin <= this.#life) return;
    let count = 0;
    while (buffer.length > 0 && now - buffer.firstOrigin > this.#life) {
      buffer.release(addSequence(buffer.first, 1));
      count += 1;
    }
    this.statistics.packetsDroppedLate += count;
  }

  /** Time without an acknowledgement after which packets are sent again, µs. */
  get #timeout(): number {
    return Math.max(MIN_TIMEOUT, this.#link.rtt.upperBound) * 2 ** this.#backoff;
  }

  /** The last packets of a burst can be lost without the peer knowing about them. */
  #repeatSilent(now: number): void {
    const buffer = this.#buffer;
    if (buffer.inFlight === 0 || buffer.lostCount > 0) return;
    const timeout = this.#timeout;
    if (now - Math.max(buffer.firstSentAt, this.#progressAt) < timeout) return;
    this.#backoff = Math.min(MAX_BACKOFF, this.#backoff + 1);
    this.#progressAt = now;
    for (let sequence = buffer.first; sequence !== buffer.unsent; sequence = addSequence(sequence, 1)) {
      if (now - buffer.sentAt(sequence) >= timeout) buffer.markLost(sequence);
    }
  }
}
