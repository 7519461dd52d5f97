/** ffmpeg that receives one stream over RTP and decodes it into a file. */
import { createSocket } from 'node:dgram';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { Child, type ChildExit } from './child.ts';
import { until } from './poll.ts';
import { freePorts } from './ports.ts';

const LISTEN_DEADLINE_MS = 15_000;

export interface RtpDecoderOptions {
  readonly kind: 'video' | 'audio';
  readonly payloadType: number;
  /** Value of `a=rtpmap`. */
  readonly map: string;
  /** ffmpeg's output format. */
  readonly output: readonly string[];
  /** Folder of the files that ffmpeg reads and writes. */
  readonly folder: string;
}

/** The caller of `open` closes it. */
export class RtpDecoder {
  readonly #child: Child;
  readonly #file: string;
  readonly #port: number;
  readonly #socket = createSocket('udp4');

  private constructor(child: Child, file: string, port: number) {
    this.#child = child;
    this.#file = file;
    this.#port = port;
  }

  static async open({ kind, payloadType, map, output, folder }: RtpDecoderOptions): Promise<RtpDecoder> {
    const [port = 0] = await freePorts(1);
    const description = path.join(folder, `${kind}.sdp`);
    const head = ['v=0', 'o=- 0 0 IN IP4 127.0.0.1', 's=-', 'c=IN IP4 127.0.0.1', 't=0 0'];
    writeFileSync(description, [...head, `m=${kind} ${port} RTP/AVP ${payloadType}`, `a=rtpmap:${payloadType} ${map}`, ''].join('\r\n'));
    const file = path.join(folder, `${kind}.raw`);
    const input = ['-v', 'error', '-nostdin', '-y', '-protocol_whitelist', 'file,udp,rtp', '-i', description];
    const decoder = new RtpDecoder(new Child(requireProgram('ffmpeg'), [...input, ...output, '-flush_packets', '1', file]), file, port);
    const place = `:${port.toString(16).toUpperCase().padStart(4, '0')} `;
    await until('ffmpeg listens', () => readFileSync('/proc/net/udp', 'latin1').includes(place), { deadlineMs: LISTEN_DEADLINE_MS });
    return decoder;
  }

  /** ffmpeg's errors. */
  get errors(): string {
    return this.#child.stderr;
  }

  push(packet: Uint8Array): void {
    this.#socket.send(packet, this.#port, '127.0.0.1');
  }

  /** The data decoded so far. */
  decoded(): Buffer {
    try {
      return readFileSync(this.#file);
    } catch {
      return Buffer.alloc(0);
    }
  }

  /** Waits until ffmpeg ends by itself. */
  async ended(deadlineMs: number): Promise<ChildExit> {
    return await this.#child.ended(deadlineMs);
  }

  async close(): Promise<void> {
    this.#socket.close();
    await this.#child.kill();
  }
}
