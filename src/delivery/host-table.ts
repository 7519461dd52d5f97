/** Finds the virtual host of a request by its `Host` header. */
import { HostNameTable, type NamedHosts } from '../core/host-name-table.ts';
import { hostName } from '../wire/http/request-target.ts';

/** Cached host headers; peers choose them, so the cache is emptied when it is full. */
const MAX_CACHE = 1024;
/** Longer values are looked up each time (a name has 253 characters, RFC 1035, and a port 6). */
const MAX_CACHED_LENGTH = 260;

/** Each delivery thread has its own table, which the main thread updates. */
export class HostTable {
  #names = new HostNameTable([]);
  readonly #cache = new Map<string, string | null>();

  /** Virtual hosts in order of declaration. */
  set(hosts: readonly NamedHosts[]): void {
    this.#names = new HostNameTable(hosts);
    this.#cache.clear();
  }

  /** Name of the virtual host for a `Host` header (port allowed); null if there is none. */
  find(host: string): string | null {
    const known = this.#cache.get(host);
    if (known !== undefined) return known;
    const found = this.#names.find(hostName(host)) ?? null;
    if (host.length > MAX_CACHED_LENGTH) return found;
    if (this.#cache.size >= MAX_CACHE) this.#cache.clear();
    this.#cache.set(host, found);
    return found;
  }
}
