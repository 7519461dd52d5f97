/**
 * Access control over HTTP. The URL of a multivariant playlist or an image is checked; later requests contain the session in their URL,
 * which ends with the admission.
 */
import { createHash } from 'node:crypto';
import type { AccessProtocol, AccessRequest, Admitted, Gatekeeper, Judgement } from '../../access/access-check.ts';
import type { ControlledHost } from '../../access/access-controls.ts';
import type { KeyRing } from '../../access/key-ring.ts';
import { PublisherKind } from '../../core/kinds.ts';
import { proxyHeaders, type TrustedProxies } from '../../util/trusted-proxies.ts';
import { queryValue, type RequestTarget, urlBase } from '../../wire/http/request-target.ts';
import type { ViewerAdmission } from '../feed/view.ts';
import type { AnswerSink, IncomingRequest } from '../http/answer-sink.ts';

/** Decides about requests, and reports where a decision is needed. */
export interface AdmissionGatekeeper extends Gatekeeper {
  follow(hosts: readonly ControlledHost[]): void;
  covers(vhost: string, direction: 'outgoing', protocol: AccessProtocol): boolean;
  /** The applications with play tokens. */
  readonly keys: Pick<KeyRing, 'covers' | 'isEmpty'>;
}

/** A request to watch. */
export interface AdmissionPlace {
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
}

/** The request's URL and headers for the decision. */
export interface Asked {
  readonly protocol: AccessProtocol;
  readonly target: RequestTarget;
  /** The `Host` header; '' without one. */
  readonly host: string;
}

/** Protocols over HTTP that can be protected, by kind of feed. */
const PROTOCOLS: Partial<Record<PublisherKind, AccessProtocol>> = {
  [PublisherKind.LLHLS]: 'llhls',
  [PublisherKind.HLS]: 'hls',
  [PublisherKind.THUMBNAIL]: 'thumbnail',
};
const MEDIA = 'chunklist_';
const MEDIA_PLAYLIST = /^chunklist_\d+_[a-z]+_[^_]*_llhls\.m3u8$/;
const MARK_DIGITS = 16;
/** The mark of an application with play tokens: the session contains the grant of its token. */
const TOKENED = 'tokens';

/** The access protocol of a kind of feed. */
export function protocolOf(kind: PublisherKind): AccessProtocol | undefined {
  return PROTOCOLS[kind];
}

/** The protocol of a playback that starts with this file; null for files named by playlists. */
export function beginning(file: string, query: string): AccessProtocol | null {
  if (file.startsWith('thumb.')) return 'thumbnail';
  if (!file.endsWith('.m3u8') || file.endsWith('_hls.m3u8') || isMediaPlaylist(file)) return null;
  return file.startsWith('ts:') || queryValue(query, 'format') === 'ts' ? 'hls' : 'llhls';
}

/** The expression costs as much as all other checks. */
function isMediaPlaylist(file: string): boolean {
  return file.startsWith(MEDIA) && MEDIA_PLAYLIST.test(file);
}

/** An admitted client, from the decision to the end of the request or of its session. */
export class Entered implements ViewerAdmission {
  readonly protocol: AccessProtocol;
  readonly base: string;
  readonly #verdict: Admitted;
  #hasSession = false;

  constructor(verdict: Admitted, { protocol, base }: { readonly protocol: AccessProtocol; readonly base: string }) {
    this.#verdict = verdict;
    this.protocol = protocol;
    this.base = base;
  }

  get expiresAt(): number {
    return this.#verdict.expiresAt;
  }

  get grant(): string | undefined {
    return this.#verdict.grant;
  }

  get sent(): boolean {
    return this.#verdict.newUrl !== undefined;
  }

  get ticket(): number | undefined {
    return this.#verdict.ticket;
  }

  entered(): void {
    this.#hasSession = true;
  }

  leave(): void {
    if (!this.#hasSession) this.#verdict.close();
  }
}

/** One for each thread. */
export class RequestAdmission {
  readonly #access: AdmissionGatekeeper;
  readonly #proxies: TrustedProxies;
  /** By virtual host and protocol: distinguishes sessions from those under earlier settings. */
  #marks = new Map<string, Partial<Record<AccessProtocol, string>>>();
  #version = 0;
  /** The last one: most requests use one host name. */
  #base = { scheme: '', place: '', port: 0, text: '' };

  constructor(access: AdmissionGatekeeper, proxies: TrustedProxies) {
    this.#access = access;
    this.#proxies = proxies;
  }

  /** The current virtual hosts. */
  setHosts(hosts: readonly ControlledHost[]): void {
    this.#access.follow(hosts);
    this.#version += 1;
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

  /** Changes whenever results of `markOf` may have changed. */
  get version(): number {
    return this.#version;
  }

  /** Whether any virtual host or application restricts access. */
  get active(): boolean {
    return this.#marks.size > 0 || !this.#access.keys.isEmpty;
  }

  /** Undefined where access is open; else a text that is part of the session's scope. */
  markOf(vhost: string, app: string, protocol: AccessProtocol | undefined): string | undefined {
    if (!this.active || protocol === undefined) return undefined;
    const mark = this.#marks.get(vhost)?.[protocol];
    if (!this.asksForTokens(vhost, app)) return mark;
    return `${mark ?? protocol} ${TOKENED}`;
  }

  /** Whether access is restricted there for at least one protocol. */
  guards(vhost: string, app: string): boolean {
    return this.active && Object.values(PROTOCOLS).some((protocol) => this.markOf(vhost, app, protocol) !== undefined);
  }

  /** Whether a play token is required. */
  asksForTokens(vhost: string, app: string): boolean {
    return this.#access.keys.covers(vhost, app, 'outgoing');
  }

  judge(place: AdmissionPlace, asked: Asked, request: IncomingRequest, sink: AnswerSink): Judgement {
    const { vhost, app, stream } = place;
    return this.#access.admit({ host: vhost, vhost, app, stream }, this.#requestOf(asked, request, sink));
  }

  #requestOf({ protocol, target, host }: Asked, request: IncomingRequest, sink: AnswerSink): AccessRequest {
    const { remoteAddress: address, remotePort: port, secure, localPort } = sink;
    let end = { secure, port: localPort };
    let realIp = address;
    if (this.#proxies.has(address)) {
      const headers = proxyHeaders((name) => request.header(name));
      end = this.#proxies.askedAt(address, headers, end);
      realIp = this.#proxies.realIpOf(address, headers);
    }
    const { path, query, authority } = target;
    const base = this.#baseOf(end.secure ? 'https' : 'http', authority ?? host, end.port);
    // Both are prefixes of the URL, so equal lengths mean that they are all of it.
    const isAll = authority === undefined && query !== '' && request.target.length === path.length + 1 + query.length;
    const tail = isAll ? request.target : `${path}${query === '' ? '' : `?${query}`}`;
    return {
      direction: 'outgoing',
      protocol,
      url: base + tail,
      parts: isAll ? { base, tail } : undefined,
      client: { address, port, realIp, userAgent: request.header('user-agent'), authorization: request.header('authorization') },
    };
  }

  #baseOf(scheme: string, place: string, port: number): string {
    const last = this.#base;
    if (last.port !== port || last.scheme !== scheme || last.place !== place) {
      this.#base = { scheme, place, port, text: urlBase(scheme, place, port) };
    }
    return this.#base.text;
  }
}
