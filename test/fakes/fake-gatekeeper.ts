/** A gatekeeper whose verdicts come from the test, for services without a server. */
import type { AccessPlace, AccessRequest, Admitted, Denied, Gatekeeper, Judgement, Verdict } from '../../src/access/access-check.ts';

export const DENIED: Denied = { admitted: false, code: 'url-expired', reason: 'the URL has expired (url_expire)' };

/** An admitted client; the test can end the admission. */
export class FakeLease implements Admitted {
  readonly admitted = true;
  readonly expiresAt: number;
  newUrl: string | undefined = undefined;
  /** Calls of `close`. */
  closes = 0;
  expire: ((reason: string) => void) | null = null;

  constructor(expiresAt = Number.POSITIVE_INFINITY) {
    this.expiresAt = expiresAt;
  }

  /** A client that is sent to another URL. */
  static to(newUrl: string): FakeLease {
    const lease = new FakeLease();
    lease.newUrl = newUrl;
    return lease;
  }

  begin(onExpired: (reason: string) => void): void {
    this.expire = onExpired;
  }

  close(): void {
    this.closes += 1;
  }
}

export class FakeGatekeeper implements Gatekeeper {
  readonly asked: { readonly place: AccessPlace; readonly request: AccessRequest }[] = [];
  readonly #judge: (request: AccessRequest) => Judgement;

  constructor(judge: (request: AccessRequest) => Judgement) {
    this.#judge = judge;
  }

  /** A gatekeeper that waits until the test answers. */
  static waiting(): { readonly access: FakeGatekeeper; readonly answer: (verdict: Verdict) => void } {
    const { promise, resolve } = Promise.withResolvers<Verdict>();
    return { access: new FakeGatekeeper(() => promise), answer: resolve };
  }

  admit(place: AccessPlace, request: AccessRequest): Judgement {
    this.asked.push({ place, request });
    return this.#judge(request);
  }
}
