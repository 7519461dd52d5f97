/** Decides who is admitted, by the settings of each virtual host. */
import type { AdmissionWebhooksConfig, SignedPolicyConfig, VirtualHostConfig } from '../config/index.ts';
import { HostNameTable, type NamedHosts } from '../core/host-name-table.ts';
import type { Clock } from '../util/clock.ts';
import {
  type AccessCheck,
  type AccessPlace,
  type AccessProtocol,
  type AccessRequest,
  type Denied,
  type Direction,
  type Gatekeeper,
  type Judgement,
  OPEN,
  type Passed,
  type Verdict,
} from './access-check.ts';
import type { HostKeys } from './access-keys.ts';
import { AdmissionLease } from './admission-lease.ts';
import { KeyRing } from './key-ring.ts';
import { RefusalCounts } from './refusal-counts.ts';
import { SignedPolicyCheck } from './signed-policy.ts';

/** Deadline for checks that ask other servers, ms. Each such check has a shorter limit (`MAX_WEBHOOK_TIMEOUT_MS`). */
const VERDICT_MS = 11_000;
const LATE: Denied = { admitted: false, code: 'no-verdict', reason: 'access control did not answer in time' };
const FAULT: Denied = { admitted: false, code: 'check-failed', reason: 'access control failed inside the server' };

/** A virtual host's access rules. Plain values: delivery threads get them by message. */
export interface AccessSettings {
  readonly signedPolicy?: SignedPolicyConfig;
  readonly admissionWebhooks?: AdmissionWebhooksConfig;
}

/** A virtual host with its access settings; without settings everyone is admitted. */
export interface ControlledHost extends NamedHosts {
  readonly access?: AccessSettings | undefined;
  /** Access rules of its applications. */
  readonly keys?: HostKeys | undefined;
}

/** Equal settings are the same object, so a virtual host is unchanged if its settings are identical. */
const SETTINGS = new WeakMap<VirtualHostConfig, AccessSettings>();

/** The access rules of a definition, the same object for the same definition; undefined if nothing is protected. */
export function accessSettingsOf(config: VirtualHostConfig): AccessSettings | undefined {
  const { signedPolicy, admissionWebhooks } = config;
  const found = {
    ...(signedPolicy !== undefined && isEnabled(signedPolicy) && { signedPolicy }),
    ...(admissionWebhooks !== undefined && isEnabled(admissionWebhooks) && { admissionWebhooks }),
  };
  if (Object.keys(found).length === 0) return undefined;
  const settings = SETTINGS.get(config) ?? found;
  SETTINGS.set(config, settings);
  return settings;
}

function isEnabled({ enables }: SignedPolicyConfig | AdmissionWebhooksConfig): boolean {
  return enables.providers.length + enables.publishers.length > 0;
}

const NONE: readonly AccessCheck[] = [];

/** Usually all checks cover the request, and the list is returned without a copy. */
function coveringOf(checks: readonly AccessCheck[], { direction, protocol }: AccessRequest): readonly AccessCheck[] {
  const covers = (check: AccessCheck): boolean => check.covers(direction, protocol);
  return checks.every(covers) ? checks : checks.filter(covers);
}

/** The checks of the virtual host `vhost`, in the order in which they judge. */
export type ChecksOf = (settings: AccessSettings, vhost: string) => readonly AccessCheck[];

/** Checks that need only the clock. */
function ownChecks(clock: Clock): ChecksOf {
  return ({ signedPolicy }) => (signedPolicy === undefined ? [] : [new SignedPolicyCheck(signedPolicy, clock)]);
}

/** Signed policy first, then the control server: only a valid URL is worth a request. */
export function allChecks(clock: Clock, webhookOf: (settings: AdmissionWebhooksConfig, vhost: string) => AccessCheck): ChecksOf {
  const own = ownChecks(clock);
  return (settings, vhost) => {
    const { admissionWebhooks } = settings;
    return [...own(settings, vhost), ...(admissionWebhooks === undefined ? [] : [webhookOf(admissionWebhooks, vhost)])];
  };
}

/** `tell` is called for each refused client, `onFault` for each internal error with a description. */
export interface AccessControlsOptions {
  readonly clock: Clock;
  readonly onFault: (error: unknown, what: string) => void;
  readonly tell: (denied: Denied, vhost: string, request: AccessRequest) => void;
  /** Default: `ownChecks`. */
  readonly checksOf?: ChecksOf;
}

/** The main thread and each delivery thread have one. Needs no closing; admissions have timers until they are closed. */
export class AccessControls implements Gatekeeper {
  /** Requests that were refused. */
  readonly refusals = new RefusalCounts();
  /** Publish keys and play tokens, which are checked first. */
  readonly keys: KeyRing;
  readonly #options: AccessControlsOptions;
  readonly #checksOf: ChecksOf;
  #hosts = new HostNameTable([]);
  #names = new Set<string>();
  /** Rules of the virtual hosts that protect something. */
  #checks = new Map<string, { readonly settings: AccessSettings; readonly checks: readonly AccessCheck[] }>();

  constructor(options: AccessControlsOptions) {
    this.#options = options;
    this.keys = new KeyRing(options.clock);
    this.#checksOf = options.checksOf ?? ownChecks(options.clock);
  }

  /** Takes the present virtual hosts, in order of declaration, for future requests. */
  follow(hosts: readonly ControlledHost[]): void {
    this.#hosts = new HostNameTable(hosts);
    this.#names = new Set(hosts.map(({ name }) => name));
    const before = this.#checks;
    this.#checks = new Map();
    for (const { name, access: settings } of hosts) {
      if (settings === undefined) continue;
      const known = before.get(name);
      this.#checks.set(name, known?.settings === settings ? known : { settings, checks: this.#checksOf(settings, name) });
    }
    // Comes last, because it disconnects clients, whose places others may take.
    this.keys.follow(hosts);
  }

  /** Whether access is restricted for this protocol and direction. */
  covers(vhost: string, direction: Direction, protocol: AccessProtocol): boolean {
    return this.#checks.get(vhost)?.checks.some((check) => check.covers(direction, protocol)) ?? false;
  }

  admit(place: AccessPlace, request: AccessRequest): Judgement {
    const { host, vhost } = place;
    if (this.#checks.size === 0 && this.keys.isEmpty) return OPEN;
    const name = vhost !== undefined && this.#names.has(vhost) ? vhost : this.#hosts.find(host);
    const all = name === undefined ? undefined : this.#checks.get(name)?.checks;
    const own = name === undefined ? null : this.keys.check(name, place, request.direction);
    const covering = all === undefined ? NONE : coveringOf(all, request);
    const checks = own === null ? covering : [own, ...covering];
    // A request for a missing virtual host fails later in any case.
    if (name === undefined || checks.length === 0) return OPEN;
    const verdict = this.#ask(checks, request);
    return verdict instanceof Promise ? verdict.then((late) => this.#tell(late, name, request)) : this.#tell(verdict, name, request);
  }

  #tell(verdict: Verdict, vhost: string, request: AccessRequest): Verdict {
    if (verdict.admitted) return verdict;
    this.refusals.note(request, verdict);
    this.#options.tell(verdict, vhost, request);
    return verdict;
  }

  #ask(checks: readonly AccessCheck[], request: AccessRequest): Judgement {
    const lease = new AdmissionLease(this.#options.clock, this.#options.onFault);
    let asked = 0;
    for (const check of checks) {
      asked += 1;
      let said: Passed | Denied | Promise<Passed | Denied>;
      try {
        said = check.judge(request);
      } catch (error) {
        said = this.#fault(error);
      }
      if (said instanceof Promise) return this.#await(lease, said, { rest: checks.slice(asked), request });
      if (!said.admitted) {
        lease.close();
        return said;
      }
      lease.limit(said);
    }
    return lease;
  }

  /** Resolves within the deadline; a later admission is closed at once. */
  #await(
    lease: AdmissionLease,
    first: Promise<Passed | Denied>,
    { rest, request }: { readonly rest: readonly AccessCheck[]; readonly request: AccessRequest },
  ): Promise<Verdict> {
    const { promise, resolve } = Promise.withResolvers<Verdict>();
    let isLate = false;
    const deadline = setTimeout(() => {
      isLate = true;
      resolve(LATE);
    }, VERDICT_MS);
    const ask = async (): Promise<Verdict> => {
      const waiting: (() => Promise<Passed | Denied> | Passed | Denied)[] = [
        () => first,
        ...rest.map((check) => () => check.judge(request)),
      ];
      for (const next of waiting) {
        const said = await next();
        if (!said.admitted) return said;
        lease.limit(said);
        if (isLate) return LATE;
      }
      return lease;
    };
    const settle = (verdict: Verdict): void => {
      clearTimeout(deadline);
      // A refused client, or one that waited too long, needs no admission any more.
      if (!verdict.admitted) lease.close();
      resolve(verdict);
    };
    ask().then(settle, (error: unknown) => settle(this.#fault(error)));
    return promise;
  }

  #fault(error: unknown): Denied {
    this.#options.onFault(error, 'access control of a request, which is refused,');
    return FAULT;
  }
}
