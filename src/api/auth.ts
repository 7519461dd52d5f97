/** HTTP Basic authentication with one access token (RFC 7617 in form; the colon has no meaning here). */
import { timingSafeEqual } from 'node:crypto';
import { ApiError } from './errors.ts';

/** Judges `Authorization` headers against the access token. */
export class TokenAuth {
  readonly #token: Buffer;
  /** Header values that were accepted before; bounded because few spellings of one token exist. */
  readonly #accepted = new Set<string>();

  constructor(accessToken: string) {
    if (accessToken === '') throw new TypeError('The access token of the API must not be empty');
    this.#token = Buffer.from(accessToken, 'utf8');
  }

  /** Null when the header carries the token, else the error to answer. */
  check(header: string | undefined): ApiError | null {
    if (header === undefined || header === '') return new ApiError('AUTH_HEADER_REQUIRED');
    if (this.#accepted.has(header)) return null;
    const [scheme = '', credential, ...rest] = header.split(' ');
    if (credential === undefined || rest.length > 0) return new ApiError('AUTH_HEADER_INVALID');
    if (scheme.toUpperCase() !== 'BASIC') return new ApiError('AUTH_SCHEME_UNSUPPORTED', scheme);
    if (credential === '') return new ApiError('AUTH_CREDENTIAL_FORMAT');
    const given = Buffer.from(credential, 'base64');
    if (given.length !== this.#token.length || !timingSafeEqual(given, this.#token)) return new ApiError('AUTH_CREDENTIAL_WRONG');
    if (this.#accepted.size >= MAX_SPELLINGS) this.#accepted.clear();
    this.#accepted.add(header);
    return null;
  }
}

const MAX_SPELLINGS = 16;
