/** The fanout in the addon: the addon's threads send and receive, this class passes commands. */
import { randomInt } from 'node:crypto';
import type { Handle, NativeAddon } from '../../../../native/addon.ts';
import type { SrtpKeys } from '../../../../wire/srtp/profile.ts';
import type { DtlsCertificate } from '../dtls-certificate.ts';
import {
  DEFAULT_HISTORY,
  type DtlsEndpoint,
  type DtlsListener,
  type Fanout,
  type FanoutCounters,
  type FanoutListener,
  MAX_FIRST_SEQUENCE,
  type PacketizedFrame,
  type PeerAddress,
  type SourcePlan,
  type ViewerCounters,
  type ViewerPlan,
} from './fanout.ts';
import { NativeDtls } from './native-dtls.ts';

/** `kSegmented`, `kBatched`, `kSingle` of the addon. */
const SEND_MODES = { segmented: 0, batched: 1, single: 2 } as const;
const EventType = { STUN: 0, DTLS: 1, RTCP: 2, RTP: 3, TCP: 4 } as const;
const SLOT_FIELDS = 10;

/** The way of sending datagrams; `segmented` falls back by itself where the kernel has no segmentation. */
export type SendMode = keyof typeof SEND_MODES;

/** `history` counts packets that each source can send again. */
export interface NativeFanoutOptions {
  readonly certificate: DtlsCertificate;
  readonly listener: FanoutListener;
  readonly threads: number;
  readonly sendMode?: SendMode;
  readonly history?: number;
}

/** After `close`, which may be called twice, there are no callbacks. */
export class NativeFanout implements Fanout {
  readonly kind = 'native';
  readonly #addon: NativeAddon;
  readonly #handle: Handle;
  readonly #context: Handle;
  #closed = false;

  constructor(addon: NativeAddon, options: NativeFanoutOptions) {
    const { certificate, listener, threads, sendMode = 'segmented', history = DEFAULT_HISTORY } = options;
    this.#addon = addon;
    this.#context = addon.dtlsContext(certificate.certificate, certificate.key);
    this.#handle = addon.open(threads, SEND_MODES[sendMode], history, (type, id, bytes, host, port, at) => {
      if (type === EventType.STUN) listener.stun(id, { host, port }, bytes);
      else if (type === EventType.DTLS) listener.dtls(id, { host, port }, bytes);
      else if (type === EventType.RTCP) listener.rtcp(id, bytes);
      else if (type === EventType.RTP) listener.rtp(id, bytes, at);
      else listener.tcp(id, bytes);
    });
  }

  async bind(host: string, port: number): Promise<{ socket: number; port: number }> {
    const [socket, bound] = this.#addon.bind(this.#handle, host, port);
    return { socket, port: bound };
  }

  send(socket: number, to: PeerAddress, datagram: Uint8Array): boolean {
    return !this.#closed && this.#addon.send(this.#handle, socket, to.host, to.port, datagram);
  }

  openSource({ clockRate, epochMs, fec = false }: SourcePlan): number {
    return this.#addon.openSource(this.#handle, clockRate, epochMs, fec);
  }

  push(source: number, frame: PacketizedFrame): boolean {
    if (this.#closed) return false;
    const { timestamp, keyframe, marker, payloads, sizes } = frame;
    return this.#addon.push(this.#handle, source, timestamp, keyframe, marker, payloads, sizes);
  }

  closeSource(source: number): void {
    if (!this.#closed) this.#addon.closeSource(this.#handle, source);
  }

  openViewer({ cname, slots }: ViewerPlan): number {
    const fields = new Uint32Array(slots.length * SLOT_FIELDS);
    slots.forEach(({ ssrc, payloadType, rtx, fec, extension }, n) => {
      const first = randomInt(MAX_FIRST_SEQUENCE);
      const { sendTimeAt, transportSequenceAt, bytes } = extension;
      const formats = [ssrc, payloadType, rtx?.ssrc ?? 0, rtx?.payloadType ?? 0];
      const row = [...formats, first, sendTimeAt, transportSequenceAt, bytes.length, fec?.redPayloadType ?? 0, fec?.payloadType ?? 0];
      fields.set(row, n * SLOT_FIELDS);
    });
    const extensions = Buffer.concat(slots.map(({ extension }) => extension.bytes));
    return this.#addon.openViewer(this.#handle, cname, fields, extensions);
  }

  setKeys(viewer: number, { profile, localKey, localSalt, remoteKey, remoteSalt }: SrtpKeys): void {
    if (!this.#closed) this.#addon.setKeys(this.#handle, viewer, profile, localKey, localSalt, remoteKey, remoteSalt);
  }

  connect(viewer: number, socket: number, to: PeerAddress): void {
    if (!this.#closed) this.#addon.connect(this.#handle, viewer, socket, to.host, to.port);
  }

  hear(viewer: number, socket: number, from: PeerAddress): void {
    if (!this.#closed) this.#addon.hear(this.#handle, viewer, socket, from.host, from.port);
  }

  connectTcp(viewer: number): void {
    if (!this.#closed) this.#addon.connectTcp(this.#handle, viewer);
  }

  play(viewer: number, slot: number, source: number | null): void {
    if (!this.#closed) this.#addon.play(this.#handle, viewer, slot, source ?? 0);
  }

  inject(viewer: number, packet: Uint8Array): void {
    if (!this.#closed) this.#addon.inject(this.#handle, viewer, packet);
  }

  sendRtcp(viewer: number, packet: Uint8Array): void {
    if (!this.#closed) this.#addon.sendRtcp(this.#handle, viewer, packet);
  }

  closeViewer(viewer: number): void {
    if (!this.#closed) this.#addon.closeViewer(this.#handle, viewer);
  }

  viewerCounters(viewer: number): ViewerCounters | null {
    return this.#closed ? null : (this.#addon.viewerCounters(this.#handle, viewer) as ViewerCounters | null);
  }

  readSends(viewer: number, first: number, into: Uint32Array): void {
    if (this.#closed) into.fill(0);
    else this.#addon.readSends(this.#handle, viewer, first, into);
  }

  openDtls(role: 'client' | 'server', listener: DtlsListener): DtlsEndpoint {
    return new NativeDtls(this.#addon, this.#addon.dtlsOpen(this.#context, role === 'server'), role, listener);
  }

  counters(): FanoutCounters {
    return this.#addon.counters(this.#handle) as unknown as FanoutCounters;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#addon.close(this.#handle);
  }
}
