/** WebRTC players that only do the signalling. */
import { WebSocket } from 'ws';
import { until } from '../harness/poll.ts';

const FINGERPRINT = Array.from({ length: 32 }, () => 'AB').join(':');

/** A player that uses the WebSocket protocol. */
export class SignallingPlayer {
  readonly socket: WebSocket;
  readonly heard: Record<string, unknown>[] = [];
  closed = false;

  constructor(port: number, path: string) {
    this.socket = new WebSocket(`ws://127.0.0.1:${port}${path}`);
    this.socket.on('message', (data) => this.heard.push(JSON.parse(data.toString())));
    this.socket.on('close', () => {
      this.closed = true;
    });
    this.socket.on('error', () => undefined);
  }

  async send(message: object | string): Promise<void> {
    if (this.socket.readyState === WebSocket.CONNECTING) await new Promise((resolve) => this.socket.once('open', resolve));
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  async hears(count: number): Promise<Record<string, unknown>> {
    await until(`${count} messages`, () => this.heard.length >= count, { deadlineMs: 5000, everyMs: 5 });
    return this.heard[count - 1] ?? {};
  }

  async offer(): Promise<{ id: number; sdp: string; candidates: { candidate: string; sdpMLineIndex: number }[] }> {
    await this.send({ command: 'request_offer' });
    const offer = (await this.hears(1)) as { id: number; sdp: { sdp: string }; candidates: { candidate: string; sdpMLineIndex: number }[] };
    return { id: offer.id, sdp: offer.sdp.sdp, candidates: offer.candidates };
  }
}

/** Accepts the first codec of every m-line, or `codec` for video. */
export function answerTo(offer: string, codec = 'H264'): string {
  const [, ...medias] = offer.split(/(?=^m=)/m);
  const lines = ['v=0', 'o=- 1 2 IN IP4 127.0.0.1', 's=-', 't=0 0'];
  for (const media of medias) {
    const kind = /^m=(\w+)/.exec(media)?.[1] ?? '';
    const wanted = kind === 'video' ? codec : 'OPUS';
    const type = new RegExp(`a=rtpmap:(\\d+) ${wanted}/`).exec(media)?.[1] ?? '0';
    lines.push(`m=${kind} 9 UDP/TLS/RTP/SAVPF ${type}`, 'a=recvonly', `a=mid:${/a=mid:(\w+)/.exec(media)?.[1]}`, 'a=setup:active');
    lines.push(
      `a=fingerprint:sha-256 ${FINGERPRINT}`,
      'a=ice-ufrag:abcd',
      'a=ice-pwd:0123456789012345678901',
      `a=rtpmap:${type} ${wanted}/90000`,
    );
  }
  return `${lines.join('\r\n')}\r\n`;
}
