/** One RTSP session: DESCRIBE, SETUP of every usable track, PLAY, keep-alive, TEARDOWN (RFC 2326 §10). */
import type { PullSession, PullTarget } from '../../core/pull.ts';
import type { Clock } from '../../util/clock.ts';
import { faultDetail, messageOf } from '../../util/message-of.ts';
import { type MediaDescription, parseRtspDescription } from '../../wire/rtsp/rtsp-description.ts';
import type { RtspResponse } from '../../wire/rtsp/rtsp-message.ts';
import { controlUri, type RtspUrl } from '../../wire/rtsp/rtsp-url.ts';
import { type MediaFormat, mediaFormat } from './media-track.ts';
import { RtpFeed } from './rtp-feed.ts';
import { RtspConnection, RtspRefused } from './rtsp-connection.ts';
import { UdpPorts } from './udp-ports.ts';

/** Default for a server that names no session timeout. */
const DEFAULT_SESSION_TIMEOUT_S = 30;
const MAX_KEEP_ALIVE_S = 30;
const ANSWER_TIMEOUT_MS = 10_000;
const SWEEP_MS = 100;
const TAKEN = 'RTSP can bring H.264, H.265, VP8, Opus, G.711 and AAC';
const REPORT_INTERVAL_MS = 5000;
const SESSION_NOT_FOUND = 454;
const UNSUPPORTED_TRANSPORT = 461;
const MAX_PORT = 65_535;
const MAX_CHANNEL = 255;
/** Interleaved channels are a byte, and every track takes two. */
const MAX_TRACKS = 16;

interface UsableMedia {
  readonly media: MediaDescription;
  readonly format: MediaFormat;
  readonly uri: string;
}

/** The transport of one track. */
interface TrackPath {
  readonly id: number;
  readonly uri: string;
  /** Null for interleaved data. */
  readonly ports: UdpPorts | null;
  readonly rtcpChannel: number;
}

/**
 * Owns its connection, and UDP ports where the server wants them. The core closes it; a server that leaves or falls silent ends it through
 * the sink.
 */
export class RtspSession implements PullSession {
  readonly #connection: RtspConnection;
  readonly #target: PullTarget;
  readonly #clock: Clock;
  readonly #url: RtspUrl;
  #feed: RtpFeed;
  readonly #paths: TrackPath[] = [];
  /** Feed and track of each interleaved channel. */
  readonly #channels = new Map<number, { readonly id: number; readonly control: boolean }>();
  #aggregate: string;
  #sessionId = '';
  #timeoutS = DEFAULT_SESSION_TIMEOUT_S;
  #keepAliveMethod = 'GET_PARAMETER';
  #sweep: NodeJS.Timeout | null = null;
  #nextKeepAlive = 0;
  #nextReport = 0;
  #closed = false;

  private constructor(connection: RtspConnection, url: RtspUrl, target: PullTarget, clock: Clock) {
    this.#connection = connection;
    this.#url = url;
    this.#target = target;
    this.#clock = clock;
    this.#aggregate = url.uri;
    this.#feed = this.#newFeed('ordered');
  }

  /** Opens a session that plays. Rejects with `RtspRefused` or the reason why the server cannot be used. */
  static async open(url: RtspUrl, target: PullTarget, clock: Clock): Promise<RtspSession> {
    const connection = await RtspConnection.open(url, target.signal);
    const session = new RtspSession(connection, url, target, clock);
    try {
      await session.#play();
      return session;
    } catch (error) {
      session.close();
      throw error;
    }
  }

  /** Tears the session down. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#sweep !== null) clearInterval(this.#sweep);
    if (this.#sessionId !== '') this.#connection.post('TEARDOWN', this.#aggregate, { Session: this.#sessionId });
    this.#connection.close();
    for (const { ports } of this.#paths) ports?.close();
  }

  pause(): void {
    this.#connection.pause();
  }

  resume(): void {
    this.#connection.resume();
  }

  async #play(): Promise<void> {
    const usable = await this.#describe();
    await this.#setUp(usable);
    this.#connection.listen(
      ({ channel, data }) => this.#takeInterleaved(channel, data),
      (why) => this.#end('peer-left', why),
    );
    const response = await this.#connection.request(
      'PLAY',
      this.#aggregate,
      { Session: this.#sessionId, Range: 'npt=0.000-' },
      this.#target.signal,
    );
    // The answer and the end can come together: the timer would never be stopped.
    if (this.#closed) throw new Error('the server ended the session as soon as it played');
    this.#takeRtpInfo(response);
    this.#feed.start();
    this.#nextKeepAlive = this.#clock.monotonic() + this.#keepAliveMs;
    this.#sweep = setInterval(() => this.#look(), SWEEP_MS);
  }

  async #describe(): Promise<UsableMedia[]> {
    const response = await this.#connection.request('DESCRIBE', this.#url.uri, { Accept: 'application/sdp' }, this.#target.signal);
    const base = response.headers.get('content-base')?.[0] || response.headers.get('content-location')?.[0] || this.#url.uri;
    const description = parseRtspDescription(new TextDecoder().decode(response.body));
    this.#aggregate = controlUri(base, description.control);
    const usable: UsableMedia[] = [];
    const left: string[] = [];
    for (const media of description.media) {
      const format = usable.length < MAX_TRACKS ? mediaFormat(media) : null;
      if (format === null) left.push(`${media.type} ${media.encoding || `type ${media.payloadType}`}`);
      else usable.push({ media, format, uri: controlUri(base, media.control) });
    }
    if (left.length > 0) this.#target.logger.warn({ unsupported: left }, `tracks left out: ${left.join(', ')}; ${TAKEN}`);
    if (usable.length === 0)
      throw new Error(`the source has no track of a supported codec${left.length > 0 ? `: ${left.join(', ')}` : ''}`);
    return usable;
  }

  /**
   * Over the connection itself: it passes every firewall and loses nothing. A server that says that it cannot do that (461), or
   * answers with another transport, sends datagrams.
   */
  async #setUp(usable: readonly UsableMedia[]): Promise<void> {
    let datagrams = false;
    for (const [index, item] of usable.entries()) {
      if (!datagrams && !(await this.#setUpInterleaved(item, index * 2))) {
        if (index > 0) throw new Error('the server accepts some tracks over TCP and refuses others');
        datagrams = true;
        this.#feed = this.#newFeed('unordered');
      }
      if (datagrams) await this.#setUpDatagrams(item, index * 2);
    }
  }

  /** False when the server does not support it. */
  async #setUpInterleaved(item: UsableMedia, channel: number): Promise<boolean> {
    const response = await this.#sendSetup(item.uri, `RTP/AVP/TCP;unicast;interleaved=${channel}-${channel + 1}`);
    if (response.status === UNSUPPORTED_TRANSPORT) return false;
    this.#adoptSession(response);
    const transport = transportOf(response);
    if (transport !== '' && !/interleaved|\/TCP\b/i.test(transport)) return false;
    const [rtp = channel, rtcp = rtp + 1] = numbersOf(transport, 'interleaved');
    if (Math.max(rtp, rtcp) > MAX_CHANNEL) throw new Error(`the server names an interleaved channel beyond ${MAX_CHANNEL}`);
    if (rtp === rtcp || this.#channels.has(rtp) || this.#channels.has(rtcp))
      throw new Error('the server names an interleaved channel twice');
    this.#feed.addTrack(channel, item.media, item.format);
    this.#channels.set(rtp, { id: channel, control: false });
    this.#channels.set(rtcp, { id: channel, control: true });
    this.#paths.push({ id: channel, uri: item.uri, ports: null, rtcpChannel: rtcp });
    return true;
  }

  async #setUpDatagrams(item: UsableMedia, id: number): Promise<void> {
    const ports = await UdpPorts.open(this.#connection.localAddress);
    this.#paths.push({ id, uri: item.uri, ports, rtcpChannel: 0 });
    const response = await this.#sendSetup(item.uri, `RTP/AVP;unicast;client_port=${ports.rtpPort}-${ports.rtpPort + 1}`);
    this.#adoptSession(response);
    const [rtp = 0, rtcp = rtp === 0 || rtp >= MAX_PORT ? 0 : rtp + 1] = numbersOf(transportOf(response), 'server_port');
    if (Math.max(rtp, rtcp) > MAX_PORT) throw new Error(`the server names a port beyond ${MAX_PORT}`);
    this.#feed.addTrack(id, item.media, item.format);
    const handlers = { onRtp: (data: Uint8Array) => this.#take(id, data, false), onRtcp: (data: Uint8Array) => this.#take(id, data, true) };
    ports.connect({ address: this.#connection.remoteAddress, rtp, rtcp }, handlers);
  }

  async #sendSetup(uri: string, transport: string): Promise<RtspResponse> {
    const headers = { Transport: transport, ...(this.#sessionId !== '' && { Session: this.#sessionId }) };
    return await this.#connection.exchange('SETUP', uri, headers, this.#target.signal);
  }

  #adoptSession(response: RtspResponse): void {
    if (response.status !== 200) throw new RtspRefused('SETUP', response);
    const [id = '', ...options] = (response.headers.get('session')?.[0] ?? '').split(';');
    if (id !== '') this.#sessionId = id.trim();
    const timeout = options.map((option) => /^\s*timeout\s*=\s*(\d+)/i.exec(option)?.[1]).find((value) => value !== undefined);
    if (timeout !== undefined && Number(timeout) > 0) this.#timeoutS = Number(timeout);
  }

  /** `url=…;seq=…;rtptime=…` for each track, in any order (§12.33). */
  #takeRtpInfo(response: RtspResponse): void {
    const entries = (response.headers.get('rtp-info') ?? []).flatMap((value) => value.split(/,\s*(?=url=)/i));
    for (const [index, entry] of entries.entries()) {
      const rtpTime = /(?:^|;)\s*rtptime\s*=\s*(\d{1,10})/i.exec(entry)?.[1];
      if (rtpTime === undefined) continue;
      const uri = /url\s*=\s*"?([^";,]+)/i.exec(entry)?.[1] ?? '';
      const path = this.#paths.find((candidate) => candidate.uri === uri || (uri !== '' && candidate.uri.endsWith(`/${uri}`)));
      const track = path ?? (entries.length === this.#paths.length ? this.#paths[index] : undefined);
      if (track !== undefined) this.#feed.announceStart(track.id, Number(rtpTime) >>> 0);
    }
  }

  #newFeed(network: 'ordered' | 'unordered'): RtpFeed {
    const { sink, ignoreSenderReports } = this.#target;
    return new RtpFeed({ sink, clock: this.#clock, ignoreSenderReports, ordered: network === 'ordered' });
  }

  #takeInterleaved(channel: number, data: Uint8Array): void {
    const path = this.#channels.get(channel);
    if (path !== undefined) this.#take(path.id, data, path.control);
  }

  #take(id: number, data: Uint8Array, control: boolean): void {
    try {
      if (!control) {
        this.#feed.pushRtp(id, data);
        return;
      }
      this.#feed.pushRtcp(id, data);
      if (this.#feed.left) this.#end('peer-left', 'all sources of the session said goodbye');
    } catch (error) {
      this.#fail(error);
    }
  }

  /** The server sent unplayable data, or processing it failed: that ends this session only. */
  #fail(error: unknown): void {
    this.#end('peer-error', faultDetail(error, this.#target.logger, 'RTSP session'));
  }

  get #keepAliveMs(): number {
    return Math.min((this.#timeoutS * 1000) / 2, MAX_KEEP_ALIVE_S * 1000);
  }

  #look(): void {
    const now = this.#clock.monotonic();
    try {
      this.#feed.checkDeadlines();
      if (now >= this.#nextReport) {
        this.#nextReport = now + REPORT_INTERVAL_MS;
        this.#sendReports();
      }
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (now >= this.#nextKeepAlive) {
      this.#nextKeepAlive = now + this.#keepAliveMs;
      void this.#keepAlive();
    }
  }

  #sendReports(): void {
    for (const { id, ports, rtcpChannel } of this.#paths) {
      const report = this.#feed.receiverReport(id);
      if (report === null) continue;
      if (ports === null) this.#connection.sendData(rtcpChannel, report);
      else ports.sendRtcp(report);
    }
  }

  async #keepAlive(): Promise<void> {
    try {
      const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
      const { status } = await this.#connection.exchange(this.#keepAliveMethod, this.#aggregate, { Session: this.#sessionId }, signal);
      if (status === SESSION_NOT_FOUND) this.#end('peer-error', 'the server has forgotten the session');
      // Not every server knows GET_PARAMETER; every request of a session keeps it alive.
      else if (status !== 200) this.#keepAliveMethod = 'OPTIONS';
    } catch (error) {
      this.#end('timeout', `keep-alive failed: ${messageOf(error)}`);
    }
  }

  #end(code: 'peer-left' | 'peer-error' | 'timeout', detail: string): void {
    if (this.#closed) return;
    this.close();
    this.#target.sink.close({ code, detail });
  }
}

function transportOf(response: RtspResponse): string {
  return response.headers.get('transport')?.[0] ?? '';
}

/** The two numbers of `name=a-b` in a Transport header. */
function numbersOf(transport: string, name: string): number[] {
  const match = new RegExp(`(?:^|;)\\s*${name}\\s*=\\s*(\\d+)(?:-(\\d+))?`, 'i').exec(transport);
  return [match?.[1], match?.[2]].flatMap((text) => (text === undefined ? [] : [Number(text)]));
}
