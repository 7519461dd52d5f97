/**
 * Access control over HTTP (streaming facts 4.2, 9.1): whoever begins to watch is judged by the URL of the multivariant playlist or of the
 * image; what comes after proves itself by the session in its URL, which ends when the viewer has to go.
 */
import { createHash } from 'node:crypto';
import type { AccessProtocol, AccessRequest, Gatekeeper, Judgement } from '../../access/access-check.ts';
import type { ControlledHost } from '../../access/access-controls.ts';
import { PublisherKind } from '../../core/kinds.ts';
import type { TrustedProxies } from '../../util/trusted-proxies.ts';
import type { AnswerSink, IncomingRequest } from '../http/answer-sink.ts';
import { completeUrl, queryValue, splitTarget } from '../http/request-target.ts';

/** Decides, and knows where there is something to decide. */
export interface EntranceGatekeeper extends Gatekeeper {
  follow(hosts: readonly ControlledHost[]): void;
  covers(vhost: string, direction: 'outgoing', protocol: AccessProtocol): boolean;
}

/** What of HTTP can be protected, by kind of outlet. */
const PROTOCOLS: Partial<Record<PublisherKind, AccessProtocol>> = {
  [PublisherKind.LLHLS]: 'llhls',
  [PublisherKind.HLS]: 'hls',
  [PublisherKind.THUMBNAIL]: 'thumbnail',
};
const MEDIA_PLAYLIST = /^chunklist_\d+_[a-z]+_[^_]*_llhls\.m3u8$/;
const MARK_DIGITS = 16;

/** The word for what a kind of outlet serves. */
export function protocolOf(kind: PublisherKind): AccessProtocol | undefined {
  return PROTOCOLS[kind];
}

/** What somebody who asks for this file begins to watch; null for files that others name. */
export function beginning(file: string, query: string): AccessProtocol | null {
  if (file.startsWith('thumb.')) return 'thumbnail';
  if (!file.endsWith('.m3u8') || file.endsWith('_hls.m3u8') || MEDIA_PLAYLIST.test(file)) return null;
  return file.startsWith('ts:') || queryValue(query, 'format') === 'ts' ? 'hls' : 'llhls';
}

/** One for each thread. */
export class Entrance {
  readonly #access: EntranceGatekeeper;
  readonly #proxies: TrustedProxies;
  /** By virtual host and protocol: what tells its sessions from those of other settings. */
  #marks = new Map<string, Partial<Record<AccessProtocol, string>>>();

  constructor(access: EntranceGatekeeper, proxies: TrustedProxies) {
    this.#access = access;
    this.#proxies = proxies;
  }

  /** All virtual hosts as they are now. */
  setHosts(hosts: readonly ControlledHost[]): void {
    this.#access.follow(hosts);
    this.#marks = new Map();
    for (const { name, access } of hosts) {
      if (access === undefined) continue;
      const marks: Partial<Record<AccessProtocol, string>> = {};
      for (const protocol of Object.values(PROTOCOLS)) {
        if (!this.#access.covers(name, 'outgoing', protocol)) continue;
        const settings = JSON.stringify([protocol, access]);
        marks[protocol] = createHash('sha256').update(settings).digest('hex').slice(0, MARK_DIGITS);
      }
      this.#marks.set(name, marks);
    }
  }

  /** Some virtual host protects something. */
  get active(): boolean {
    return this.#marks.size > 0;
  }

  /** Undefined where everybody may watch; else a text that is part of what sessions are good for. */
  markOf(vhost: string, protocol: AccessProtocol | undefined): string | undefined {
    return !this.active || protocol === undefined ? undefined : this.#marks.get(vhost)?.[protocol];
  }

  judge(vhost: string, protocol: AccessProtocol, request: IncomingRequest, sink: AnswerSink): Judgement {
    return this.#access.admit({ host: vhost, vhost }, this.#requestOf(protocol, request, sink));
  }

  #requestOf(protocol: AccessProtocol, request: IncomingRequest, sink: AnswerSink): AccessRequest {
    const place = { host: request.header('host') ?? '', port: sink.localPort };
    const { remoteAddress: address, remotePort: port } = sink;
    const headers = { forwardedFor: request.header('x-forwarded-for'), realIp: request.header('x-real-ip') };
    return {
      direction: 'outgoing',
      protocol,
      url: completeUrl(sink.secure ? 'https' : 'http', splitTarget(request.target), place),
      client: {
        ...{ address, port, realIp: this.#proxies.realIpOf(address, headers) },
        userAgent: request.header('user-agent'),
        authorization: request.header('authorization'),
      },
    };
  }
}
