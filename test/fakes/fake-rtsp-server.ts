/** An RTSP server that follows a script: it refuses, redirects, stays silent, or sends synthetic frames. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface RtspScript {
  /** Status lines by method, instead of `200 OK`. */
  readonly statuses?: Readonly<Record<string, string>>;
  readonly location?: string;
  /** Replaces the session description with H.264. */
  readonly description?: string;
  readonly withAudio?: boolean;
  /** `rtptime` of the answer to PLAY. */
  readonly starts?: { readonly video: number; readonly audio: number };
  readonly timeoutS?: number;
  /** Refuses transport over the connection with 461. */
  readonly datagramsOnly?: boolean;
  /** `server_port` in the answer to SETUP, in place of a real port. */
  readonly serverPort?: string;
  /** Headers of the answers to SETUP over the connection, in place of `Session` and `Transport`, by number of the SETUP. */
  readonly setUpHeaders?: readonly (readonly string[])[];
  /** `RTP-Info` of the answer to PLAY. */
  readonly rtpInfo?: string;
  /** Sent together with the answer to PLAY. */
  readonly afterPlay?: string;
  /** Never answers. */
  readonly silent?: boolean;
  /** Sent in place of the first answer. */
  readonly garbage?: string;
}

const VIDEO_SECTION = 'm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:frame\r\n';
const AUDIO_SECTION = 'm=audio 0 RTP/AVP 97\r\na=rtpmap:97 opus/48000/2\r\na=control:audio\r\n';
/** Parameter sets (320x180, no reordering) and a slice of a keyframe. */
const UNITS = ['6764000dacd941419f9f0110000003001000000301e602001e840007a1292ca01e28532c', '68ebe3cb22c0', '65888400'];

export class FakeRtspServer {
  /** Methods of the requests, in order. */
  readonly methods: string[] = [];
  /** All received text. */
  log = '';
  readonly #script: RtspScript;
  readonly #server = net.createServer((socket) => this.#serve(socket));
  readonly #sockets = new Set<net.Socket>();
  readonly #datagrams: Socket = createSocket('udp4');
  #clientPort = 0;
  #sequence = 0;
  #setUps = 0;

  constructor(script: RtspScript) {
    this.#script = script;
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    this.#datagrams.bind(0, '127.0.0.1');
    await Promise.all([once(this.#server, 'listening'), once(this.#datagrams, 'listening')]);
  }

  url(path: string): string {
    return `rtsp://127.0.0.1:${(this.#server.address() as net.AddressInfo).port}${path}`;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#datagrams.close();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async until(predicate: (server: this) => boolean): Promise<void> {
    while (!predicate(this)) await delay(5);
  }

  /** Connections that are open. */
  get connections(): number {
    return this.#sockets.size;
  }

  write(text: string | Uint8Array): void {
    for (const socket of this.#sockets) socket.write(text);
  }

  /** Stops reading. */
  stopReading(): void {
    for (const socket of this.#sockets) socket.pause();
  }

  reset(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  sendFrame(timestamp: number): void {
    for (const [index, unit] of UNITS.entries()) this.#sendRtp(0, 96, timestamp, Buffer.from(unit, 'hex'), index === UNITS.length - 1);
  }

  /** Sends a NAL unit of an undefined type. */
  sendUnreadable(timestamp: number): void {
    this.#sendRtp(0, 96, timestamp, Buffer.from('1f010203', 'hex'), true);
  }

  sendAudio(timestamp: number): void {
    this.#sendRtp(2, 97, timestamp, Buffer.from('fc010203', 'hex'), true);
  }

  sendReport(track: 'video' | 'audio', { seconds, rtp }: { seconds: number; rtp: number }): void {
    const report = Buffer.alloc(28);
    report.set([0x80, 200, 0, 6]);
    report.writeUInt32BE(track === 'video' ? 1 : 3, 4);
    report.writeUInt32BE(seconds, 8);
    report.writeUInt32BE(rtp, 16);
    this.#sendInterleaved(track === 'video' ? 1 : 3, report);
  }

  sendGoodbye(): void {
    this.#sendInterleaved(1, Buffer.from('81cb000100000001', 'hex'));
  }

  /** The synchronisation source (SSRC) of a track is its channel plus one. */
  #sendRtp(channel: number, payloadType: number, timestamp: number, payload: Buffer, marker: boolean): void {
    const header = Buffer.alloc(12);
    header.set([0x80, (marker ? 0x80 : 0) | payloadType]);
    header.writeUInt16BE(this.#sequence & 0xffff, 2);
    this.#sequence += 1;
    header.writeUInt32BE(timestamp, 4);
    header.writeUInt32BE(channel + 1, 8);
    const packet = Buffer.concat([header, payload]);
    if (this.#clientPort > 0) this.#datagrams.send(packet, this.#clientPort, '127.0.0.1');
    else this.#sendInterleaved(channel, packet);
  }

  #sendInterleaved(channel: number, data: Buffer): void {
    const header = Buffer.from([0x24, channel, data.length >> 8, data.length & 0xff]);
    for (const socket of this.#sockets) socket.write(Buffer.concat([header, data]));
  }

  #serve(socket: net.Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => this.#sockets.delete(socket));
    let text = '';
    socket.on('data', (data) => {
      text += data.toString('latin1');
      this.log += data.toString('latin1');
      for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
        this.#answer(socket, text.slice(0, end));
        text = text.slice(end + 4);
      }
    });
  }

  #answer(socket: net.Socket, request: string): void {
    const method = /([A-Z_]+) \S+ RTSP\/1\.0/.exec(request)?.[1];
    if (method === undefined || this.#script.silent === true) return;
    this.methods.push(method);
    if (this.#script.garbage !== undefined) {
      socket.write(this.#script.garbage);
      return;
    }
    const sequence = /CSeq: (\d+)/.exec(request)?.[1] ?? '';
    const transport = /Transport: (.*)/.exec(request)?.[1]?.trim() ?? '';
    const unsupported = method === 'SETUP' && this.#script.datagramsOnly === true && transport.includes('TCP');
    const status = unsupported ? '461 Unsupported Transport' : (this.#script.statuses?.[method] ?? '200 OK');
    const lines = [`RTSP/1.0 ${status}`, `CSeq: ${sequence}`];
    if (status.startsWith('3')) lines.push(`Location: ${this.#script.location ?? ''}`);
    let body = '';
    if (status === '200 OK' && method === 'DESCRIBE') {
      body = this.#script.description ?? `v=0\r\n${VIDEO_SECTION}${this.#script.withAudio === true ? AUDIO_SECTION : ''}`;
      lines.push(`Content-Length: ${body.length}`);
    }
    if (status === '200 OK' && method === 'SETUP') lines.push(...this.#setUp(transport));
    const { starts } = this.#script;
    if (method === 'PLAY' && starts !== undefined) {
      lines.push(`RTP-Info: url=frame;seq=0;rtptime=${starts.video}, url=${this.url('/cam/audio')};seq=0;rtptime=${starts.audio}`);
    }
    if (method === 'PLAY' && this.#script.rtpInfo !== undefined) lines.push(`RTP-Info: ${this.#script.rtpInfo}`);
    const after = method === 'PLAY' ? (this.#script.afterPlay ?? '') : '';
    socket.write(`${lines.join('\r\n')}\r\n\r\n${body}${after}`, 'latin1');
  }

  #setUp(transport: string): string[] {
    const clientPort = /client_port=(\d+)/.exec(transport)?.[1];
    const made = clientPort === undefined ? this.#script.setUpHeaders?.[this.#setUps] : undefined;
    this.#setUps += 1;
    if (made !== undefined) return [...made];
    const session = `Session: 42;timeout=${this.#script.timeoutS ?? 60}`;
    if (clientPort === undefined) return [session, `Transport: ${transport}`];
    this.#clientPort = Number(clientPort);
    const { port } = this.#datagrams.address();
    return [session, `Transport: ${transport};server_port=${this.#script.serverPort ?? `${port}-${port}`}`];
  }
}
