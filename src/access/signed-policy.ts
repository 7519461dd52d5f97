/** Admits only clients whose URL was signed with the key of the virtual host (`SignedPolicy`). */
import type { SignedPolicyConfig } from '../config/index.ts';
import { AddressSet } from '../util/address-set.ts';
import type { Clock } from '../util/clock.ts';
import type { KeyedHash } from '../util/keyed-hash.ts';
import {
  type AccessCheck,
  type AccessProtocol,
  type AccessRequest,
  type Denied,
  type Direction,
  isEnabledFor,
  type Passed,
} from './access-check.ts';
import { KnownUrls } from './known-urls.ts';
import { isGenuine, type Policy, readPolicy, readSignedUrl, urlSignature } from './signed-url.ts';

/** Smaller values are probably seconds instead of milliseconds. */
const FIRST_MS = 100_000_000_000;

/** Why a URL is refused, from the first check to the last. */
const DENIALS = {
  'url-unsigned': 'the URL is not signed: it has no policy or no signature',
  'signature-wrong': 'the signature is not that of this URL: it was signed with another key, for another URL or port, or changed since',
  'policy-unreadable': 'the policy of the URL is not a JSON object in base64url',
  'policy-invalid': 'the policy of the URL has no url_expire, or a member that is no time in ms, no address or no direction',
  'url-expired': 'the URL has expired (url_expire)',
  'url-expired-seconds': 'the URL has expired (url_expire counts milliseconds, and this looks like seconds)',
  'url-not-yet': 'the URL is not valid yet (url_activate)',
  'stream-expired': 'the time of the session is over (stream_expire)',
  'direction-wrong': 'the URL is for the other direction (direction)',
  'address-wrong': 'the URL is for another address (allow_ip)',
  'real-address-wrong': 'the URL is for another client address (real_ip)',
} as const;
const EXPIRY = 'the stream_expire of its signed URL has come';

function deny(code: keyof typeof DENIALS): Denied {
  return { admitted: false, code, reason: DENIALS[code] };
}

/** Answers synchronously. Nothing to close. */
export class SignedPolicyCheck implements AccessCheck {
  readonly #config: SignedPolicyConfig;
  readonly #hash: KeyedHash;
  readonly #clock: Clock;
  readonly #known = new KnownUrls();

  constructor(config: SignedPolicyConfig, clock: Clock) {
    this.#config = config;
    this.#hash = urlSignature(config.secretKey);
    this.#clock = clock;
  }

  covers(direction: Direction, protocol: AccessProtocol): boolean {
    return isEnabledFor(this.#config, direction, protocol);
  }

  judge({ direction, url, parts = { base: '', tail: url }, client }: AccessRequest): Passed | Denied {
    const known = this.#known.find(parts);
    if (known !== undefined) return this.#judgePolicy(known, direction, client);
    const signed = readSignedUrl(url, this.#config);
    if (signed.policy === '' || signed.signature === '') return deny('url-unsigned');
    const digest = this.#hash.digest(signed.text);
    if (!isGenuine(signed, this.#hash, digest)) return deny('signature-wrong');
    const value = readPolicy(signed.policy);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return deny('policy-unreadable');
    if (!isPolicy(value)) return deny('policy-invalid');
    this.#known.note(parts, digest, value);
    return this.#judgePolicy(value, direction, client);
  }

  #judgePolicy(value: Policy, direction: Direction, client: AccessRequest['client']): Passed | Denied {
    const now = this.#clock.now();
    const { url_expire: urlExpire, url_activate: urlActivate = 0, stream_expire: streamExpire = Number.POSITIVE_INFINITY } = value;
    if (now >= urlExpire) return deny(urlExpire < FIRST_MS ? 'url-expired-seconds' : 'url-expired');
    if (now < urlActivate) return deny('url-not-yet');
    if (now >= streamExpire) return deny('stream-expired');
    if (value.direction !== undefined && value.direction !== direction) return deny('direction-wrong');
    if (value.allow_ip !== undefined && !isIn(value.allow_ip, client.address)) return deny('address-wrong');
    if (value.real_ip !== undefined && !isIn(value.real_ip, client.realIp)) return deny('real-address-wrong');
    return { admitted: true, expiresAt: streamExpire, expiry: EXPIRY };
  }
}

/** An unknown member might be a restriction, so it makes the policy invalid. */
function isPolicy(value: object): value is Policy {
  const { url_expire, url_activate, stream_expire, allow_ip, real_ip, direction } = value as Record<keyof Policy, unknown>;
  return (
    isTime(url_expire) &&
    (url_activate === undefined || isTime(url_activate)) &&
    (stream_expire === undefined || isTime(stream_expire)) &&
    (allow_ip === undefined || isRange(allow_ip)) &&
    (real_ip === undefined || isRange(real_ip)) &&
    (direction === undefined || direction === 'incoming' || direction === 'outgoing')
  );
}

function isTime(time: unknown): boolean {
  return typeof time === 'number' && Number.isSafeInteger(time) && time >= 0;
}

/** Most ranges are one address, written like the client's; creating a set costs more than everything else. */
function isIn(range: string, address: string): boolean {
  return range === address || new AddressSet([range]).has(address);
}

function isRange(range: unknown): boolean {
  return typeof range === 'string' && AddressSet.isAddress(range);
}
