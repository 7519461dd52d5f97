/** Finds the views for a request: Host → virtual host, path → stream, file → view. */

import { type AccessProtocol, type Admitted, shownReason, type Verdict, whenJudged } from '../../access/access-check.ts';
import type { CrossDomainPolicy } from '../../access/cross-domains.ts';
import { readNewUrl } from '../../access/new-url.ts';
import { decodePath, type RequestTarget, splitTarget } from '../../wire/http/request-target.ts';
import type { ViewerAdmission } from '../feed/view.ts';
import type { HostTable } from '../host-table.ts';
import type { AnswerSink, IncomingRequest, RequestHandler } from '../http/answer-sink.ts';
import type { CatchUp } from './catch-up.ts';
import { COMMON_HEADERS, crossDomainBlock, Delivery, type DeliveryServices, RefusalText } from './delivery.ts';
import type { FeedRegistry } from './feed-registry.ts';
import type { PageHandler } from './page-handler.ts';
import type { PageRules } from './page-rules.ts';
import type { PendingDemands } from './pending-demands.ts';
import { beginning, Entered, type RequestAdmission } from './request-admission.ts';
import type { ThreadFeed } from './thread-feed.ts';

const PREFLIGHT = 'Access-Control-Allow-Private-Network: true\r\n';
const ALLOW = 'Allow: OPTIONS, GET, HEAD\r\n';
const TEXT = 'Content-Type: text/plain\r\n';
const ANY_TEXT = 'Content-Type: text/plain; charset=utf-8\r\n';
const EMPTY = 'Content-Type: text/html\r\n';
const KNOWN_METHODS = new Set(['POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'CONNECT']);

/** Handles requests that are not delivery: WebSocket upgrades and methods other than GET, HEAD and OPTIONS. */
export interface MainThreadRequests {
  /** Returns false if it does not accept the request; then a refusal is answered. */
  take(request: IncomingRequest, sink: AnswerSink): boolean;
}

/** Parts of the thread for routing. `foreign` is null where signalling is refused. */
export interface RouterOptions {
  readonly hosts: HostTable;
  readonly feeds: FeedRegistry;
  readonly pageRules: PageRules;
  readonly services: DeliveryServices;
  readonly catchUp: CatchUp;
  /** Maximum of requests that wait for media. */
  readonly maxWaiting: number;
  /** Searches missing streams. */
  readonly demands: PendingDemands;
  /** Decides which clients may start to watch. */
  readonly requestAdmission: RequestAdmission;
  readonly foreign: MainThreadRequests | null;
  /** Pages for browsers; null if there are none. */
  readonly pages: PageHandler | null;
}

interface Place {
  readonly vhost: string | null;
  /** `<app>/<stream>`. */
  readonly key: string;
  readonly feeds: readonly ThreadFeed[] | undefined;
  readonly file: string;
  readonly query: string;
  /** The requested target. */
  readonly target: RequestTarget;
  /** The `Host` header; '' without one. */
  readonly host: string;
}

/** Answers every request, or passes it to a view that does. One per thread; it owns no connection. */
export class RequestRouter implements RequestHandler {
  /** New viewers are refused. */
  draining = false;
  readonly #options: RouterOptions;
  /** Requests with a pending decision. */
  #judging = 0;

  constructor(options: RouterOptions) {
    this.#options = options;
  }

  handle(request: IncomingRequest, sink: AnswerSink): void {
    const { method } = request;
    const { catchUp, foreign, pages } = this.#options;
    if (method === 'GET' || method === 'HEAD') {
      if (request.header('upgrade')?.toLowerCase() === 'websocket') this.#foreign(request, sink);
      else if (pages?.take(request, sink) === true) return;
      else if (catchUp.current) this.#deliver(request, sink);
      else this.#later(sink, () => this.#deliver(request, sink));
    } else if (method === 'OPTIONS' && request.target === '*') this.#preflight(request, sink, undefined);
    // Signalling answers its own OPTIONS requests.
    else if (method === 'OPTIONS' && foreign?.take(request, sink) === true) return;
    else if (method === 'OPTIONS' && catchUp.current) this.#preflight(request, sink, this.#find(request));
    else if (method === 'OPTIONS') this.#later(sink, () => this.#preflight(request, sink, this.#find(request)));
    else this.#foreign(request, sink);
  }

  /** Answers as soon as the thread has all updates. */
  #later(sink: AnswerSink, answer: () => void): void {
    sink.waitBriefly({ aborted: this.#options.catchUp.wait(() => answerGuarded(sink, answer)) });
  }

  /** Answers admitted clients, where access is restricted; others get the reason. */
  #deliver(request: IncomingRequest, sink: AnswerSink): void {
    const { requestAdmission, services, maxWaiting } = this.#options;
    const place = this.#find(request);
    const { vhost, file, query } = place;
    if (this.draining && vhost !== null && beginning(file, query) !== null && beginsToWatch(file, query)) {
      this.#refuse(request, sink, { place, status: 503, words: RefusalText.DRAINING, lines: 'Retry-After: 1\r\n' });
      return;
    }
    const protocol = vhost === null || !requestAdmission.active ? null : beginning(file, query);
    const app = appOf(place.key);
    if (vhost === null || protocol === null || requestAdmission.markOf(vhost, app, protocol) === undefined) {
      this.#serve(request, sink, { place, admission: null });
      return;
    }
    if (this.#judging >= maxWaiting) {
      services.counters.overloads += 1;
      this.#refuse(request, sink, { place, status: 503, words: RefusalText.BUSY, lines: 'Retry-After: 1\r\n' });
      return;
    }
    const judgement = requestAdmission.judge(
      { vhost, app, stream: place.key.slice(app.length + 1) },
      { protocol, target: place.target, host: place.host },
      request,
      sink,
    );
    // Most decisions are immediate: then nothing is stored.
    if (!(judgement instanceof Promise)) {
      this.#judged(request, sink, { verdict: judgement, protocol, place });
      return;
    }
    const cancel = whenJudged(
      judgement,
      (verdict) => {
        this.#judging -= 1;
        this.#judged(request, sink, { verdict, protocol, place: verdict.admitted ? this.#find(request) : place });
      },
      (error) => sink.fail(error),
    );
    this.#judging += 1;
    sink.wait({
      aborted: () => {
        this.#judging -= 1;
        cancel?.();
      },
    });
  }

  #judged(
    request: IncomingRequest,
    sink: AnswerSink,
    { verdict, protocol, place }: { readonly verdict: Verdict; readonly protocol: AccessProtocol; readonly place: Place },
  ): void {
    if (verdict.admitted) {
      this.#enter(request, sink, { verdict, protocol, place });
      return;
    }
    const lines = verdict.challenge === undefined ? '' : `WWW-Authenticate: ${verdict.challenge}\r\n`;
    this.#refuse(request, sink, { place, status: 401, words: `${shownReason(verdict)}\n`, lines });
  }

  /** Serves an admitted client, at the place that a control server names, if any. */
  #enter(
    request: IncomingRequest,
    sink: AnswerSink,
    { verdict, protocol, place }: { readonly verdict: Admitted; readonly protocol: AccessProtocol; readonly place: Place },
  ): void {
    const redirected = verdict.newUrl === undefined ? null : this.#redirected(verdict.newUrl, place);
    const goal = redirected?.place ?? place;
    const goalProtocol = redirected === null ? protocol : (beginning(goal.file, goal.query) ?? protocol);
    const admission = new Entered(verdict, { protocol: goalProtocol, base: redirected?.base ?? '' });
    try {
      this.#serve(request, sink, { place: goal, admission });
    } catch (error) {
      admission.leave();
      throw error;
    }
  }

  /**
   * The target of `newUrl`, and the redirect from the requested URL: relative, so that it works behind a proxy with other paths, unless
   * the host differs. A URL without a file gets the requested file.
   */
  #redirected(newUrl: string, asked: Place): { readonly place: Place; readonly base: string } | null {
    const url = readNewUrl(newUrl);
    if (url === null) return null;
    const { path, query, authority } = url;
    const found = this.#placeOf({ path, query, authority }, '');
    const place = found.file === '' ? { ...found, file: asked.file } : found;
    const [, app = '', stream = ''] = path.split('/');
    if (place.vhost !== asked.vhost) return { place, base: `//${authority}/${app}/${stream}/` };
    return { place, base: place.key === asked.key ? '' : `../../${app}/${stream}/` };
  }

  #serve(
    request: IncomingRequest,
    sink: AnswerSink,
    { place, admission, mayAsk = true }: { readonly place: Place; readonly admission: ViewerAdmission | null; readonly mayAsk?: boolean },
  ): void {
    const { services, maxWaiting } = this.#options;
    const first = place.feeds?.[0];
    if (place.feeds === undefined || first === undefined || place.file === '') {
      if (mayAsk && place.feeds === undefined && this.#ask(request, sink, { place, admission })) return;
      admission?.leave();
      sink.answer(404, COMMON_HEADERS + crossDomainBlock(this.#rulesFor(place), request) + TEXT, absenceOf(place), null);
      return;
    }
    const delivery = new Delivery(services, request, sink, {
      ...{ vhost: place.vhost ?? '', file: place.file, query: place.query },
      ...{ feed: first, admission },
    });
    let isGuarded = false;
    for (const feed of place.feeds) {
      delivery.offerTo(feed);
      if (feed.guarded && !mayWatch(feed, delivery)) {
        // Only admitted clients learn which object is missing.
        isGuarded ||= admission === null;
        continue;
      }
      if (!feed.view.handle(delivery)) continue;
      feed.asked();
      if (delivery.done) return;
      delivery.hold();
      if (services.waiting.size + (services.answers?.waiting ?? 0) > maxWaiting) {
        services.counters.overloads += 1;
        delivery.withdraw(503, RefusalText.BUSY, 'Retry-After: 1\r\n');
      }
      return;
    }
    delivery.offerTo(speaker(place.feeds, place.file) ?? first);
    if (isGuarded) delivery.refuse(401, RefusalText.NO_SESSION);
    else delivery.refuse(404, RefusalText.NO_FILE);
  }

  /** Answers with a text and the CORS rules of the feed that would have answered. */
  #refuse(
    request: IncomingRequest,
    sink: AnswerSink,
    {
      place,
      status,
      words,
      lines = '',
    }: { readonly place: Place; readonly status: number; readonly words: string; readonly lines?: string },
  ): void {
    const policy = (place.feeds === undefined ? undefined : speaker(place.feeds, place.file))?.policy ?? this.#rulesFor(place);
    // Texts are written as bytes, but the text of a control server may use any script.
    const isPlain = /^[\n -~]*$/.test(words);
    const type = isPlain ? TEXT : ANY_TEXT;
    sink.answer(status, COMMON_HEADERS + crossDomainBlock(policy, request) + lines + type, isPlain ? words : [Buffer.from(words)], null);
  }

  /** Holds a request that starts playback until the search at the origins has ended. False: there is no origin to ask. */
  #ask(
    request: IncomingRequest,
    sink: AnswerSink,
    { place, admission }: { readonly place: Place; readonly admission: ViewerAdmission | null },
  ): boolean {
    const { demands, requestAdmission, feeds, services } = this.#options;
    const { vhost, key, file, query } = place;
    if (vhost === null || !demands.hasOrigins(vhost) || !beginsToWatch(file, query)) return false;
    const [app = '', stream = '', ...deeper] = key.split('/');
    if (app === '' || stream === '' || deeper.length > 0) return false;
    // Files named by playlists need a session, and there is none for a missing stream.
    if (admission === null && beginning(file, query) === null && requestAdmission.guards(vhost, app)) return false;
    const client = services.proxies.clientOf(sink.remoteAddress, request.header('x-forwarded-for'));
    const forget = demands.ask({ vhost, app, stream, query, client }, (found) => {
      const current = { ...place, feeds: feeds.find(vhost, key) };
      if (found === 'unknown' && current.feeds === undefined) {
        admission?.leave();
        this.#refuse(request, sink, { place, status: 503, words: RefusalText.NO_MAP, lines: 'Retry-After: 1\r\n' });
        return;
      }
      answerGuarded(sink, () => this.#serve(request, sink, { place: current, admission, mayAsk: false }));
    });
    if (forget === null) {
      services.counters.overloads += 1;
      admission?.leave();
      sink.answer(
        503,
        `${COMMON_HEADERS}${crossDomainBlock(this.#rulesFor(place), request)}Retry-After: 1\r\n${TEXT}`,
        RefusalText.BUSY,
        null,
      );
      return true;
    }
    sink.wait({
      aborted: () => {
        forget();
        admission?.leave();
      },
    });
    return true;
  }

  /** CORS rules for a missing stream. */
  #rulesFor({ vhost, key, file, query }: Place): CrossDomainPolicy {
    return this.#options.pageRules.find(vhost, appOf(key), file, query);
  }

  #preflight(request: IncomingRequest, sink: AnswerSink, place: Place | undefined): void {
    const feed = place?.feeds === undefined ? undefined : speaker(place.feeds, place.file);
    const policy = feed?.preflight ?? (place === undefined ? this.#options.pageRules.fallback : this.#rulesFor(place));
    sink.answer(200, COMMON_HEADERS + crossDomainBlock(policy, request) + PREFLIGHT + EMPTY, '', null);
  }

  #foreign(request: IncomingRequest, sink: AnswerSink): void {
    const { foreign, pageRules } = this.#options;
    if (foreign?.take(request, sink) === true) return;
    const block = COMMON_HEADERS + crossDomainBlock(pageRules.fallback, request) + TEXT;
    if (request.method === 'GET' || request.method === 'HEAD') {
      sink.answer(501, block, 'WebSocket is not served here\n', null);
    } else if (KNOWN_METHODS.has(request.method)) {
      sink.answer(405, block + ALLOW, `${request.method} is not allowed here\n`, null);
    } else sink.answer(501, block, 'unknown method\n', null);
  }

  #find(request: IncomingRequest): Place {
    return this.#placeOf(splitTarget(request.target), request.header('host') ?? '');
  }

  #placeOf(target: RequestTarget, host: string): Place {
    const { path } = target;
    const vhost = this.#options.hosts.find(target.authority ?? host);
    // Split before decoding: an escaped slash never separates.
    const streamStart = path.indexOf('/', 1) + 1;
    const streamEnd = streamStart === 0 ? -1 : path.indexOf('/', streamStart);
    const key = decodePath(streamEnd < 0 ? path.slice(1) : path.slice(1, streamEnd));
    const fileEnd = streamEnd < 0 ? -1 : path.indexOf('/', streamEnd + 1);
    const file = streamEnd < 0 ? '' : decodePath(path.slice(streamEnd + 1, fileEnd < 0 ? undefined : fileEnd));
    const feeds = vhost === null ? undefined : this.#options.feeds.find(vhost, key);
    return { vhost, key, feeds, file, query: target.query, target, host };
  }
}

/** The application of `<app>/<stream>`. */
function appOf(key: string): string {
  const slash = key.indexOf('/');
  return slash < 0 ? key : key.slice(0, slash);
}

/** A failure costs its own request: others wait for the same event. */
function answerGuarded(sink: AnswerSink, answer: () => void): void {
  try {
    answer();
  } catch (error) {
    sink.fail(error);
  }
}

/**
 * Whether the client was admitted for this protocol, or has a session of it. A session cannot make another one
 * (`ThreadFeed.createSession`).
 */
function mayWatch(feed: ThreadFeed, delivery: Delivery): boolean {
  return delivery.admission === null ? feed.session(delivery) !== null : delivery.admission.protocol === feed.protocol;
}

/** The missing object, from the outside in. */
function absenceOf({ vhost, key, feeds, file }: Place): string {
  if (vhost === null) return RefusalText.NO_HOST;
  if (feeds !== undefined && file === '') return RefusalText.NO_FILE;
  return /^[^/]+\/[^/]/.test(key) ? RefusalText.NO_STREAM : RefusalText.NO_PATH;
}

/** Players that continue to request media of an ended stream must not start it again. */
function beginsToWatch(file: string, query: string): boolean {
  return file.startsWith('thumb.') || (file.endsWith('.m3u8') && !/(?:^|&)session=/.test(query));
}

/** The feed whose CORS rules apply to a file that no view claimed: by its name, as the reference server routes. */
function speaker(feeds: readonly ThreadFeed[], file: string): ThreadFeed | undefined {
  const thumbnail = file.startsWith('thumb.');
  return feeds.find((feed) => (feed.kind === 'thumbnail') === thumbnail) ?? feeds[0];
}
