/** Pulls streams from other servers over OVT. */
import { ProviderKind, SourceType } from '../../core/kinds.ts';
import type { PullSession, PullSource, PullTarget } from '../../core/pull.ts';
import type { Clock } from '../../util/clock.ts';
import { parseOvtUrl } from '../../wire/ovt/ovt-url.ts';
import { OvtPullSession } from './ovt-pull-session.ts';
import { RelayPaths } from './relay-paths.ts';

export class OvtPullSource implements PullSource {
  readonly schemes = ['ovt', 'ovts'];
  readonly provider = ProviderKind.OVT;
  readonly sourceType = SourceType.OVT;
  readonly #clock: Clock;
  readonly #paths: RelayPaths;
  readonly #key: string | null;
  readonly #ca: string | null;

  /**
   * `paths`: shared with the publisher; default: for a server that serves no edges. `key`: for origins that ask for one. `ca`: certificates
   * in PEM to verify origins with TLS; default: those of Node.js.
   */
  constructor(clock: Clock, paths: RelayPaths = new RelayPaths(), { key, ca }: { readonly key?: string; readonly ca?: string } = {}) {
    this.#clock = clock;
    this.#paths = paths;
    this.#key = key ?? null;
    this.#ca = ca ?? null;
  }

  async open(target: PullTarget): Promise<PullSession> {
    const url = parseOvtUrl(target.url);
    if (url === null) throw new Error('no OVT URL: ovt://host[:port]/app/stream expected, or ovts:// with TLS');
    return await OvtPullSession.open(url, target, { clock: this.#clock, paths: this.#paths, key: this.#key, ca: this.#ca });
  }
}
