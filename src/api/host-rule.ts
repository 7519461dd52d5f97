/** Host names by which the API may be called (`Managers/Host/Names`). */
import { compileWildcard } from '../util/wildcard.ts';
import { ApiError } from './errors.ts';

/** Checks the host of a request. */
export class HostRule {
  readonly #patterns: readonly ((name: string) => boolean)[];
  readonly #any: boolean;

  /** `names` may contain the wildcards `*` and `?`; a lone `*` allows every request, including one without a host. */
  constructor(names: readonly string[]) {
    this.#any = names.includes('*');
    this.#patterns = names.map((name) => compileWildcard(name.toLowerCase()));
  }

  /** Null if `host` (a Host header, with or without port) is allowed, else the error to answer. */
  check(host: string | undefined): ApiError | null {
    if (this.#any) return null;
    const name = withoutPort(host ?? '').toLowerCase();
    return this.#patterns.some((matches) => matches(name)) ? null : new ApiError('HOST_NOT_ALLOWED', host ?? '');
  }
}

function withoutPort(host: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d*)?$/.exec(host);
  return bracketed?.[1] ?? host.replace(/:\d*$/, '');
}
