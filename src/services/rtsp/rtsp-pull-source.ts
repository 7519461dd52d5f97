/** Pulls streams over RTSP. */
import { ProviderKind, SourceType } from '../../core/kinds.ts';
import type { PullSession, PullSource, PullTarget } from '../../core/pull.ts';
import type { Clock } from '../../util/clock.ts';
import { controlUri, parseRtspUrl, type RtspUrl } from '../../wire/rtsp/rtsp-url.ts';
import { RtspRefused } from './rtsp-connection.ts';
import { RtspSession } from './rtsp-session.ts';

const MAX_REDIRECTS = 5;

/** The server has one; nothing to close. Follows a few redirects (RFC 2326 §11.3). */
export class RtspPullSource implements PullSource {
  readonly schemes = ['rtsp', 'rtspc'];
  readonly provider = ProviderKind.RTSP_PULL;
  readonly sourceType = SourceType.RTSP_PULL;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async open(target: PullTarget): Promise<PullSession> {
    let url = parse(target.url);
    for (let count = 0; ; count += 1) {
      try {
        return await RtspSession.open(url, target, this.#clock);
      } catch (error) {
        if (!(error instanceof RtspRefused) || error.location === null) throw error;
        if (count >= MAX_REDIRECTS) throw new Error(`the server redirected more than ${MAX_REDIRECTS} times`, { cause: error });
        url = follow(url, error.location);
      }
    }
  }
}

function parse(text: string): RtspUrl {
  const url = parseRtspUrl(text);
  if (url === null) throw new Error(`no RTSP URL: rtsp://[user:password@]host[:port]/path expected`);
  return url;
}

/** Credentials go along only to the same host: another one must not learn them. */
function follow(from: RtspUrl, location: string): RtspUrl {
  const to = parse(controlUri(from.uri, location));
  return to.credentials === null && to.host === from.host ? { ...to, credentials: from.credentials } : to;
}
