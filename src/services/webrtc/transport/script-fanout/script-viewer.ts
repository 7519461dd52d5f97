/** One viewer of the fanout in JavaScript: numbers, header extension, protection, retransmission. */
import { randomInt } from 'node:crypto';
import type { SrtpKeys } from '../../../../wire/srtp/profile.ts';
import { SrtpCipher } from '../../../../wire/srtp/srtp-cipher.ts';
import { SrtpReceiver } from '../../../../wire/srtp/srtp-receiver.ts';
import { MAX_FIRST_SEQUENCE, type PeerAddress, type SlotPlan, type ViewerPlan } from '../fanout/fanout.ts';
import type { ScriptSource, SourceFrame } from './script-source.ts';

/** The same packet is not sent again more often than this, ms. */
const RESEND_GAP = 15;
/** Retransmissions to one viewer, as a share of its other packets: without a limit a narrow path would get narrower. */
const RESEND_SHARE = 0.5;
/** Maximum of retransmissions at once: a large keyframe. */
const RESEND_BURST = 150;
/** Packets of a stream to one viewer that can be sent again: half a second at 5 Mbit/s. */
const MAX_KEPT_PACKETS = 256;
const RTP_HEADER = 12;
const NTP_OFFSET_S = 2_208_988_800;

/** A packet that was sent. */
interface SentPacket {
  /** -1: none was kept here yet. */
  index: number;
  frame: SourceFrame | null;
  packet: number;
  /** When it was sent again, ms. */
  againAt: number;
}

interface Slot {
  readonly plan: SlotPlan;
  nextIndex: number;
  rtxIndex: number;
  source: ScriptSource | null;
  next: ScriptSource | null;
  /** The last packets, each at its index modulo `MAX_KEPT_PACKETS`. */
  readonly sent: readonly SentPacket[];
  sentPackets: number;
  sentOctets: number;
  lastTimestamp: number;
  /**
   * The first frame of a new source, if the old source has sent a frame with the same timestamp: its timestamp is increased, because
   * players merge packets of equal timestamps into one frame.
   */
  moved: { readonly frame: SourceFrame; readonly to: number } | null;
}

/** The way to the network. */
export interface ViewerWire {
  /** Sends a packet to the viewer's present address; drops it while the viewer has none. */
  deliver(viewer: ScriptViewer, packet: Buffer): void;
}

/** Made and closed by the fanout. Sends nothing before it has both keys and a place (`ready`). */
export class ScriptViewer {
  readonly id: number;
  readonly counters = { packets: 0, bytes: 0, nacked: 0, resent: 0, sendErrors: 0, received: 0, refused: 0 };
  readonly #plan: ViewerPlan;
  readonly #slots: Slot[];
  readonly #wire: ViewerWire;
  /** Null until it is known; `tcp` when packets go to the listener. */
  place: { readonly socket: number; readonly to: PeerAddress } | 'tcp' | null = null;
  receiver: SrtpReceiver | null = null;
  /** Its source addresses, oldest first. */
  readonly heard = new Set<string>();
  #rtp: SrtpCipher | null = null;
  #rtcp: SrtpCipher | null = null;
  #rtcpIndex = 0;
  #budget = RESEND_BURST;

  constructor(id: number, plan: ViewerPlan, wire: ViewerWire) {
    this.id = id;
    this.#plan = plan;
    this.#wire = wire;
    this.#slots = plan.slots.map((slot) => {
      const first = randomInt(MAX_FIRST_SEQUENCE);
      return {
        plan: slot,
        nextIndex: first,
        rtxIndex: first,
        source: null,
        next: null,
        sent: Array.from({ length: MAX_KEPT_PACKETS }, () => ({ index: -1, frame: null, packet: 0, againAt: Number.NEGATIVE_INFINITY })),
        sentPackets: 0,
        sentOctets: 0,
        lastTimestamp: 0,
        moved: null,
      };
    });
  }

  get ready(): boolean {
    return this.#rtp !== null && this.place !== null;
  }

  setKeys({ profile, localKey, localSalt, remoteKey, remoteSalt }: SrtpKeys): void {
    for (const former of [this.#rtp, this.#rtcp, this.receiver]) former?.close();
    this.#rtp = new SrtpCipher(profile, localKey, localSalt, 'rtp');
    this.#rtcp = new SrtpCipher(profile, localKey, localSalt, 'rtcp');
    this.receiver = new SrtpReceiver(profile, remoteKey, remoteSalt);
  }

  play(number: number, source: ScriptSource | null): void {
    const slot = this.#slots[number];
    if (slot === undefined) return;
    slot.next?.joining.delete(this);
    slot.next = null;
    if (source === null) {
      slot.source?.viewers.delete(this);
      slot.source = null;
    } else if (slot.source !== source) {
      slot.next = source;
      source.joining.add(this);
    }
  }

  /** A keyframe of `source` begins: viewers that wait for it take it from here. */
  join(source: ScriptSource, frame: SourceFrame): void {
    for (const slot of this.#slots) {
      if (slot.next !== source) continue;
      if (slot.sentPackets > 0 && ((frame.timestamp - slot.lastTimestamp) | 0) <= 0) {
        slot.moved = { frame, to: (slot.lastTimestamp + 1) >>> 0 };
      }
      slot.source?.viewers.delete(this);
      slot.source = source;
      slot.next = null;
      source.viewers.add(this);
    }
  }

  /** The source has ended. */
  leave(source: ScriptSource): void {
    for (const slot of this.#slots) {
      if (slot.source === source) slot.source = null;
      if (slot.next === source) slot.next = null;
    }
  }

  close(): void {
    this.#slots.forEach((_slot, n) => {
      this.play(n, null);
    });
    for (const secret of [this.#rtp, this.#rtcp, this.receiver]) secret?.close();
    this.#rtp = null;
    this.#rtcp = null;
    this.receiver = null;
  }

  send(source: ScriptSource, frame: SourceFrame, first: number, last: number): void {
    if (!this.ready) return;
    for (const slot of this.#slots) if (slot.source === source) this.#sendFrame(slot, frame, first, last);
  }

  /** Sends packets again that were reported lost; returns how many are no longer known. */
  resend(ssrc: number, sequences: readonly number[], now: number): number {
    const slot = this.#slots.find(({ plan }) => plan.ssrc === ssrc && plan.rtx !== null);
    if (slot === undefined || !this.ready) return 0;
    let unknown = 0;
    for (const sequence of sequences) {
      const behind = (slot.nextIndex - sequence) & 0xffff;
      const index = slot.nextIndex - behind;
      if (behind === 0 || behind > 0x7fff || index < 0) continue;
      const kept = slot.sent[index % MAX_KEPT_PACKETS];
      if (kept?.index !== index || kept.frame === null) {
        unknown += 1;
        continue;
      }
      if (now - kept.againAt < RESEND_GAP) continue;
      if (this.#budget < 1) break;
      this.#budget -= 1;
      kept.againAt = now;
      this.#sendPacket(slot, kept.frame, kept.packet, index, slot.plan.rtx);
      this.counters.resent += 1;
    }
    return unknown;
  }

  /** Sender reports of all streams with one source description (RFC 3550 sections 6.4.1 and 6.5). */
  report(wallMs: number): void {
    const reports: Buffer[] = [];
    let speaker = 0;
    for (const { plan, source, sentPackets, sentOctets } of this.#slots) {
      if (source === null || sentPackets === 0) continue;
      const report = Buffer.alloc(28);
      report.set([0x80, 200, 0, 6]);
      report.writeUInt32BE(plan.ssrc, 4);
      report.writeUInt32BE(Math.floor(wallMs / 1000) + NTP_OFFSET_S, 8);
      report.writeUInt32BE(Math.floor(((wallMs % 1000) / 1000) * 2 ** 32), 12);
      report.writeUInt32BE(source.timestampAt(wallMs), 16);
      report.writeUInt32BE(sentPackets >>> 0, 20);
      report.writeUInt32BE(sentOctets >>> 0, 24);
      reports.push(report);
      speaker = plan.ssrc;
    }
    if (reports.length === 0) return;
    const name = Buffer.from(this.#plan.cname).subarray(0, 64);
    const words = Math.floor((4 + 2 + name.length + 1 + 3) / 4);
    const description = Buffer.alloc(4 + words * 4);
    description.set([0x81, 202]);
    description.writeUInt16BE(words, 2);
    description.writeUInt32BE(speaker, 4);
    description.set([1, name.length], 8);
    description.set(name, 10);
    this.sendRtcp(Buffer.concat([...reports, description]));
  }

  sendRtcp(packet: Uint8Array): void {
    if (this.#rtcp === null || this.place === null || packet.length < 8) return;
    const sealed = this.#rtcp.protectRtcp(packet, this.#rtcpIndex);
    this.#rtcpIndex = (this.#rtcpIndex + 1) & 0x7fff_ffff;
    this.counters.bytes += sealed.length;
    this.#wire.deliver(this, sealed);
  }

  #sendFrame(slot: Slot, frame: SourceFrame, first: number, last: number): void {
    slot.lastTimestamp = timestampFor(slot, frame);
    this.#budget = Math.min(RESEND_BURST, this.#budget + RESEND_SHARE * (last - first));
    for (let packet = first; packet < last; packet += 1) {
      const index = slot.nextIndex;
      const kept = slot.sent[index % MAX_KEPT_PACKETS];
      if (kept !== undefined) {
        kept.index = index;
        kept.frame = frame;
        kept.packet = packet;
        kept.againAt = Number.NEGATIVE_INFINITY;
      }
      slot.sentOctets += this.#sendPacket(slot, frame, packet, index, null);
      slot.nextIndex += 1;
      slot.sentPackets += 1;
    }
  }

  /**
   * With `rtx`: in the retransmission format (RFC 4588), under the next number of that stream. Returns the length of the
   * payload.
   */
  #sendPacket(slot: Slot, frame: SourceFrame, packet: number, index: number, rtx: SlotPlan['rtx']): number {
    const { plan } = slot;
    const { extension } = plan;
    const payload = frame.payload(packet);
    const header = RTP_HEADER + extension.bytes.length;
    const original = rtx === null ? 0 : 2;
    const number = rtx === null ? index : slot.rtxIndex;
    const plain = Buffer.allocUnsafe(header + original + payload.length);
    plain[0] = extension.bytes.length === 0 ? 0x80 : 0x90;
    plain[1] = (frame.marker && packet + 1 === frame.packets ? 0x80 : 0) | (rtx ?? plan).payloadType;
    plain.writeUInt16BE(number & 0xffff, 2);
    plain.writeUInt32BE(timestampFor(slot, frame), 4);
    plain.writeUInt32BE(rtx?.ssrc ?? plan.ssrc, 8);
    plain.set(extension.bytes, RTP_HEADER);
    if (extension.sendTimeAt !== 0) plain.writeUIntBE(absoluteSendTime(), RTP_HEADER + extension.sendTimeAt, 3);
    if (rtx !== null) {
      plain.writeUInt16BE(index & 0xffff, header);
      slot.rtxIndex += 1;
    }
    plain.set(payload, header + original);
    const sealed = this.#rtp?.protectRtp(plain, number);
    if (sealed !== undefined) {
      this.counters.packets += 1;
      this.counters.bytes += sealed.length;
      this.#wire.deliver(this, sealed);
    }
    return payload.length;
  }
}

function timestampFor({ moved }: Slot, frame: SourceFrame): number {
  return moved?.frame === frame ? moved.to : frame.timestamp;
}

/** 24 bits of seconds in 6.18 fixed point, of a clock that only has to run evenly. */
function absoluteSendTime(): number {
  return Math.floor(performance.now() * 262.144) % 0x100_0000;
}
