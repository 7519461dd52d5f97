/**
 * API authentication: `Authorization` headers against the access tokens. The contract has HTTP Basic with a token as the whole credential;
 * a token as user or password, and as Bearer (RFC 6750), is for clients that can send nothing else.
 */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { tokenDigest } from '../util/token-digest.ts';
import { ApiError } from './errors.ts';

/** A token and the rights of its holder. */
export interface AccessToken extends TokenHolder {
  /** In the clear, or as a hash (`tokenDigest`). */
  readonly value: string;
}

/** A client that has shown a token. */
export interface TokenHolder {
  /** Name for the log. */
  readonly name: string;
  /** False: only requests that change nothing, and answers without secrets. */
  readonly mayWrite: boolean;
  /** The only permitted path; absent: all paths. */
  readonly path?: string;
}

interface Known {
  readonly holder: TokenHolder;
  readonly digest: Buffer;
}

/** Limit of remembered header values. A token has few spellings, but its holder may use all of them. */
const MAX_SPELLINGS = 64;

/** Judges `Authorization` headers. */
export class TokenAuth {
  readonly #known: readonly Known[];
  /** Digests of accepted header values, under a random key, so that collisions cannot be constructed. */
  readonly #accepted = new Map<string, TokenHolder>();
  readonly #key = randomBytes(32).toString('hex');

  /** @throws TypeError for a token that is empty or half a hash */
  constructor(tokens: readonly AccessToken[]) {
    this.#known = tokens.map(({ value, ...holder }) => {
      if (value === '') throw new TypeError('The access token of the API must not be empty');
      const digest = tokenDigest(value);
      if (digest === null) throw new TypeError(`The access token '${holder.name}' of the API cannot be used`);
      return { holder, digest };
    });
  }

  /** The token of the header, or the error to answer. */
  check(header: string | undefined): TokenHolder | ApiError {
    if (header === undefined || header === '') return new ApiError('AUTH_HEADER_REQUIRED');
    const spelling = hash('sha256', this.#key + header, 'base64');
    const before = this.#accepted.get(spelling);
    if (before !== undefined) return before;
    const [scheme = '', credential, ...rest] = header.split(' ');
    if (credential === undefined || rest.length > 0) return new ApiError('AUTH_HEADER_INVALID');
    const read = READERS.get(scheme.toUpperCase());
    if (read === undefined) return new ApiError('AUTH_SCHEME_UNSUPPORTED', scheme);
    if (credential === '') return new ApiError('AUTH_CREDENTIAL_FORMAT');
    const holder = this.#holderOf(read(credential));
    if (holder === null) return new ApiError('AUTH_CREDENTIAL_WRONG');
    if (this.#accepted.size >= MAX_SPELLINGS) this.#accepted.clear();
    this.#accepted.set(spelling, holder);
    return holder;
  }

  /** Compares every candidate with every token, even after a match, so that timing reveals nothing. */
  #holderOf(candidates: readonly Buffer[]): TokenHolder | null {
    let found: TokenHolder | null = null;
    for (const candidate of candidates) {
      const digest = hash('sha256', candidate, 'buffer');
      for (const known of this.#known) if (timingSafeEqual(digest, known.digest)) found ??= known.holder;
    }
    return found;
  }
}

/** Possible tokens in the credential of a scheme. */
const READERS: ReadonlyMap<string, (credential: string) => readonly Buffer[]> = new Map([
  ['BASIC', basicCandidates],
  ['BEARER', (credential) => [Buffer.from(credential, 'latin1')]],
]);

const COLON = 0x3a;

/** The whole text first, as in the contract; then user and password, separated by the first colon (RFC 7617). */
function basicCandidates(credential: string): readonly Buffer[] {
  const whole = Buffer.from(credential, 'base64');
  const colon = whole.indexOf(COLON);
  return colon < 0 ? [whole] : [whole, whole.subarray(0, colon), whole.subarray(colon + 1)];
}
