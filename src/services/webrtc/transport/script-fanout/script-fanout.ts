/**
 * The fanout in JavaScript, for machines without the addon: a handful of viewers at several times the CPU each. It makes no parities and
 * does not remember send times: `settingsFor` offers viewers neither.
 */
import { createSocket, type Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import { readNacks } from '../../../../wire/rtp/nacks.ts';
import { isRtcp } from '../../../../wire/srtp/packet-head.ts';
import type { SrtpKeys } from '../../../../wire/srtp/profile.ts';
import type { DtlsCertificate } from '../dtls-certificate.ts';
import {
  type DtlsEndpoint,
  type DtlsListener,
  type Fanout,
  type FanoutCounters,
  type FanoutListener,
  MAX_PLACES,
  MAX_RTP_PAYLOAD,
  MEDIA_SOCKET_BUFFER,
  type PacketizedFrame,
  type PeerAddress,
  type SourcePlan,
  type ViewerCounters,
  type ViewerPlan,
} from '../fanout/fanout.ts';
import { ScriptDtls } from './script-dtls.ts';
import { ScriptSource } from './script-source.ts';
import { ScriptViewer, type ViewerWire } from './script-viewer.ts';

const REPORT_INTERVAL_MS = 1000;
/** Limit of bytes that wait in a port beyond the system's buffer. */
const MAX_HELD = MEDIA_SOCKET_BUFFER;

/** Works in the main thread, with a timer for reports; `close` ends it and its sockets, and may be called twice. */
export class ScriptFanout implements Fanout, ViewerWire {
  readonly kind = 'script';
  readonly #certificate: DtlsCertificate;
  readonly #listener: FanoutListener;
  readonly #sockets: Socket[] = [];
  readonly #sources = new Map<number, ScriptSource>();
  readonly #viewers = new Map<number, ScriptViewer>();
  readonly #places = new Map<string, ScriptViewer>();
  readonly #reporter: NodeJS.Timeout;
  readonly #counters = {
    datagramsSent: 0,
    sendErrors: 0,
    congested: 0,
    droppedFrames: 0,
    resent: 0,
    lostTooOld: 0,
    datagramsReceived: 0,
    strangers: 0,
    nacks: 0,
  };
  #nextId = 1;
  #closed = false;

  constructor(options: { readonly certificate: DtlsCertificate; readonly listener: FanoutListener }) {
    this.#certificate = options.certificate;
    this.#listener = options.listener;
    this.#reporter = setInterval(() => {
      for (const viewer of this.#viewers.values()) viewer.report(Date.now());
    }, REPORT_INTERVAL_MS);
    this.#reporter.unref();
  }

  bind(host: string, port: number): Promise<{ socket: number; port: number }> {
    const buffers = { sendBufferSize: MEDIA_SOCKET_BUFFER, recvBufferSize: MEDIA_SOCKET_BUFFER };
    const socket = createSocket(isIPv6(host) ? { type: 'udp6', ipv6Only: true, ...buffers } : { type: 'udp4', ...buffers });
    const { promise, resolve, reject } = Promise.withResolvers<{ socket: number; port: number }>();
    socket.once('error', reject);
    socket.bind(port, host, () => {
      socket.off('error', reject);
      // Errors of sends (ICMP) come here too; they concern one viewer, not the port.
      socket.on('error', () => {
        this.#counters.sendErrors += 1;
      });
      const id = this.#sockets.length;
      this.#sockets.push(socket);
      socket.on('message', (datagram, from) => this.#receive(id, { host: from.address, port: from.port }, datagram));
      socket.unref();
      resolve({ socket: id, port: socket.address().port });
    });
    return promise;
  }

  send(socket: number, to: PeerAddress, datagram: Uint8Array): boolean {
    return this.#transmit(socket, to, datagram, null);
  }

  deliver(viewer: ScriptViewer, packet: Buffer): void {
    const { id, place } = viewer;
    if (place === 'tcp') {
      const frame = Buffer.allocUnsafe(2 + packet.length);
      frame.writeUInt16BE(packet.length);
      frame.set(packet, 2);
      this.#listener.tcp(id, frame);
    } else if (place !== null) this.#transmit(place.socket, place.to, packet, viewer);
  }

  openSource(plan: SourcePlan): number {
    const id = this.#take();
    this.#sources.set(id, new ScriptSource(plan));
    return id;
  }

  push(source: number, frame: PacketizedFrame): boolean {
    let total = 0;
    for (const size of frame.sizes) {
      if (size === 0 || size > MAX_RTP_PAYLOAD) return false;
      total += size;
    }
    const target = this.#sources.get(source);
    if (target === undefined || total === 0 || total !== frame.payloads.length) return false;
    target.push(frame);
    return true;
  }

  closeSource(source: number): void {
    const closed = this.#sources.get(source);
    this.#counters.droppedFrames += closed?.droppedFrames ?? 0;
    closed?.close();
    this.#sources.delete(source);
  }

  openViewer(plan: ViewerPlan): number {
    const id = this.#take();
    this.#viewers.set(id, new ScriptViewer(id, plan, this));
    return id;
  }

  setKeys(viewer: number, keys: SrtpKeys): void {
    this.#viewers.get(viewer)?.setKeys(keys);
  }

  connect(id: number, socket: number, to: PeerAddress): void {
    const viewer = this.#viewers.get(id);
    if (viewer === undefined) return;
    viewer.place = { socket, to };
    this.hear(id, socket, to);
  }

  hear(id: number, socket: number, from: PeerAddress): void {
    const viewer = this.#viewers.get(id);
    if (viewer === undefined) return;
    const key = placeKey(socket, from);
    // A known address becomes the newest.
    viewer.heard.delete(key);
    viewer.heard.add(key);
    this.#places.set(key, viewer);
    const [oldest = ''] = viewer.heard;
    if (viewer.heard.size > MAX_PLACES) this.#unplace(viewer, oldest);
  }

  connectTcp(id: number): void {
    const viewer = this.#viewers.get(id);
    if (viewer === undefined) return;
    viewer.place = 'tcp';
  }

  play(viewer: number, slot: number, source: number | null): void {
    this.#viewers.get(viewer)?.play(slot, source === null ? null : (this.#sources.get(source) ?? null));
  }

  inject(id: number, packet: Uint8Array): void {
    const viewer = this.#viewers.get(id);
    if (viewer !== undefined) this.#protected(viewer, packet);
  }

  sendRtcp(viewer: number, packet: Uint8Array): void {
    this.#viewers.get(viewer)?.sendRtcp(packet);
  }

  closeViewer(id: number): void {
    const viewer = this.#viewers.get(id);
    if (viewer === undefined) return;
    this.#viewers.delete(id);
    for (const key of viewer.heard) this.#unplace(viewer, key);
    viewer.close();
  }

  viewerCounters(viewer: number): ViewerCounters | null {
    const found = this.#viewers.get(viewer);
    return found === undefined ? null : { ...found.counters };
  }

  readSends(_viewer: number, _first: number, into: Uint32Array): void {
    into.fill(0);
  }

  openDtls(role: 'client' | 'server', listener: DtlsListener): DtlsEndpoint {
    return new ScriptDtls(role, this.#certificate, listener);
  }

  counters(): FanoutCounters {
    let { droppedFrames } = this.#counters;
    for (const source of this.#sources.values()) droppedFrames += source.droppedFrames;
    return {
      ...this.#counters,
      droppedFrames,
      viewers: this.#viewers.size,
      sendCalls: this.#counters.datagramsSent,
      ignoredNacks: 0,
      droppedEvents: 0,
      droppedStrangers: 0,
      droppedInjected: 0,
    };
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#reporter);
    for (const source of this.#sources.values()) source.close();
    for (const viewer of this.#viewers.values()) viewer.close();
    // The last packets leave in the next tick.
    process.nextTick(() => {
      for (const socket of this.#sockets) socket.close();
    });
  }

  #take(): number {
    this.#nextId += 1;
    return this.#nextId - 1;
  }

  #transmit(socket: number, to: PeerAddress, datagram: Uint8Array, viewer: ScriptViewer | null): boolean {
    const port = this.#sockets[socket];
    // Port 0 is not a valid destination: `send` would throw.
    if (port === undefined || this.#closed || to.port === 0) return false;
    // Without this limit Node.js would store unlimited bytes that the system does not take.
    if (port.getSendQueueSize() > MAX_HELD) {
      this.#counters.congested += 1;
      return false;
    }
    this.#counters.datagramsSent += 1;
    port.send(datagram, to.port, to.host, (error) => {
      if (error === null) return;
      this.#counters.sendErrors += 1;
      if (viewer !== null) viewer.counters.sendErrors += 1;
    });
    return true;
  }

  #receive(socket: number, from: PeerAddress, datagram: Buffer): void {
    this.#counters.datagramsReceived += 1;
    // A sender with port 0 cannot be answered.
    const first = from.port === 0 ? 0xff : (datagram[0] ?? 0xff);
    if (first <= 3) this.#listener.stun(socket, from, datagram);
    else if (first >= 20 && first <= 63) this.#listener.dtls(socket, from, datagram);
    else {
      const viewer = first >= 128 && first <= 191 ? this.#places.get(placeKey(socket, from)) : undefined;
      if (viewer === undefined) this.#counters.strangers += 1;
      else this.#protected(viewer, datagram);
    }
  }

  #protected(viewer: ScriptViewer, packet: Uint8Array): void {
    if (viewer.receiver === null) return;
    const rtcp = isRtcp(packet);
    let plain: Buffer;
    try {
      plain = rtcp ? viewer.receiver.rtcp(packet) : viewer.receiver.rtp(packet);
    } catch {
      viewer.counters.refused += 1;
      return;
    }
    viewer.counters.received += 1;
    if (!rtcp) {
      this.#listener.rtp(viewer.id, plain, performance.now());
      return;
    }
    const { nacks, other } = readNacks(plain);
    for (const { ssrc, sequences } of nacks) {
      this.#counters.nacks += 1;
      viewer.counters.nacked += sequences.length;
      const before = viewer.counters.resent;
      this.#counters.lostTooOld += viewer.resend(ssrc, sequences, performance.now());
      this.#counters.resent += viewer.counters.resent - before;
    }
    if (other) this.#listener.rtcp(viewer.id, plain);
  }

  /** Another viewer may have the place by now. */
  #unplace(viewer: ScriptViewer, key: string): void {
    viewer.heard.delete(key);
    if (this.#places.get(key) === viewer) this.#places.delete(key);
  }
}

function placeKey(socket: number, { host, port }: PeerAddress): string {
  return `${socket} ${host} ${port}`;
}
