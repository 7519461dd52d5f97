/** Types of access control: requests, checks and verdicts. */

/** `incoming`: publishers; `outgoing`: viewers. */
export type Direction = 'incoming' | 'outgoing';

/** Ways in and out that can be protected, as `Enables` names them. WHIP, WHEP and both WebSocket protocols are `webrtc`. */
export type AccessProtocol = 'rtmp' | 'srt' | 'webrtc' | 'llhls' | 'hls' | 'thumbnail';

/** The client. */
export interface AccessClient {
  /** Address of the connection's other end: the client, or a proxy that names the client in headers only. */
  readonly address: string;
  readonly port: number;
  /** The client's address from a trusted proxy (`TrustedProxies.realIpOf`), else the same as `address`. */
  readonly realIp: string;
  readonly userAgent?: string | undefined;
  /** `Authorization` of an HTTP request, or the credentials of another protocol in the same form. Secret: not for logs. */
  readonly authorization?: string | undefined;
}

/** A request to be admitted. */
export interface AccessRequest {
  readonly direction: Direction;
  readonly protocol: AccessProtocol;
  /**
   * The complete URL of the request, with our port if the client named none (never for SRT) and the query untouched. It can hold secrets:
   * not for logs.
   */
  readonly url: string;
  /** `url` in two parts, where known: the cache of verified URLs finds them without joining. */
  readonly parts?: UrlParts | undefined;
  readonly client: AccessClient;
}

/** Two parts of a URL, to be concatenated. */
export interface UrlParts {
  /** The URL up to the path. */
  readonly base: string;
  /** The path and everything after it. */
  readonly tail: string;
}

/** The place of a request: the virtual host of this name, else the virtual host that serves `host`. */
export interface AccessPlace {
  readonly host: string;
  readonly vhost?: string | undefined;
  /** Address for looking up applications. Without it, a request is refused if any application has keys. */
  readonly app?: string;
  /** The name under which the stream will be published or was requested. */
  readonly stream?: string;
}

/** An admitted client. The receiver calls `close`, even if the admission was never used. */
export interface Admitted {
  readonly admitted: true;
  /** End of the admission, wall clock ms; infinite: never. */
  readonly expiresAt: number;
  /** The name of the key that admitted the client, if one did. */
  readonly grant?: string | undefined;
  /**
   * The place to which the client is redirected: a complete URL (`readNewUrl`), which is not judged again. It can hold secrets: not for
   * logs.
   */
  readonly newUrl?: string | undefined;
  /** The number of the admission in the thread that made it (`Passed.ticket`). */
  readonly ticket?: number | undefined;
  /** The session has begun: `onExpired` is called when its time is over, with the reason for logs, unless `close` comes first. */
  begin(onExpired: (reason: string) => void): void;
  /** The session is over. Idempotent. */
  close(): void;
}

/** A refused client. `reason` is a fixed sentence for the peer and the logs; it contains nothing that the peer sent. */
export interface Denied {
  readonly admitted: false;
  /** Machine word of the reason. */
  readonly code: string;
  readonly reason: string;
  /** The challenge of an HTTP answer, in `WWW-Authenticate`. */
  readonly challenge?: string;
  /** The control server's reason, for the peer and for the log: one short line without hidden characters. */
  readonly said?: string;
}

/** The reason of a refusal for the peer. */
export function shownReason({ reason, said }: Denied): string {
  return said ?? reason;
}

/** The verdict on a request. */
export type Verdict = Admitted | Denied;
/** A verdict, at once where possible. The promise settles within a deadline and never rejects. */
export type Judgement = Verdict | Promise<Verdict>;

/** Decides about requests. `AccessControls` is the gatekeeper of the server and of each delivery thread. */
export interface Gatekeeper {
  admit(place: AccessPlace, request: AccessRequest): Judgement;
}

/** One check's result for a request that it does not refuse. */
export interface Passed {
  readonly admitted: true;
  readonly expiresAt: number;
  /** Why the session ends at its limit. */
  readonly expiry?: string;
  /** Redirects the client. The last check with a URL wins. */
  readonly newUrl?: string | undefined;
  /** In a delivery thread: the main thread's name for the admission. */
  readonly ticket?: number;
  /** Called once, when the session is over or never began. */
  readonly closed?: () => void;
  /** The name of the key that admitted the client, for sessions that outlive the request. */
  readonly grant?: string;
  /** Called when the session begins, with a function that ends it early; returns a function to call at its end. */
  readonly watch?: (end: (reason: string) => void) => () => void;
}

/** One kind of access control of one virtual host. The checks of a host run one after the other; the first refusal counts. */
export interface AccessCheck {
  covers(direction: Direction, protocol: AccessProtocol): boolean;
  /** An exception or rejection counts as a refusal. */
  judge(request: AccessRequest): Passed | Denied | Promise<Passed | Denied>;
}

/** Whether the `Enables` of an access control contain this protocol. */
export function isEnabledFor(
  { enables }: { readonly enables: { readonly providers: readonly string[]; readonly publishers: readonly string[] } },
  direction: Direction,
  protocol: AccessProtocol,
): boolean {
  return (direction === 'incoming' ? enables.providers : enables.publishers).includes(protocol);
}

/** The admission where there is no access control. */
export const OPEN: Admitted = { admitted: true, expiresAt: Number.POSITIVE_INFINITY, begin: () => undefined, close: () => undefined };

/** Admits everyone. */
export const OPEN_GATE: Gatekeeper = { admit: () => OPEN };

/**
 * Calls `use` with the verdict. Returns null if that happened at once, else a function that cancels the wait when the client leaves; a
 * later admission is then closed at once. `failed` gets what `use` throws later.
 */
export function whenJudged(judgement: Judgement, use: (verdict: Verdict) => void, failed: (error: unknown) => void): (() => void) | null {
  if (!(judgement instanceof Promise)) {
    use(judgement);
    return null;
  }
  let left = false;
  judgement
    .then((verdict) => {
      if (!left) use(verdict);
      else if (verdict.admitted) verdict.close();
    })
    .catch(failed);
  return () => {
    left = true;
  };
}
