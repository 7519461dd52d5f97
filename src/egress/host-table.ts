/** Which virtual host a request is for, by its host name. */
import { hostName } from '../protocols/http/request-target.ts';
import { compileWildcard } from '../util/wildcard.ts';
import type { VirtualHostNames } from './thread-protocol.ts';

/** Host headers remembered; peers choose them, so the memory is emptied when it is full. */
const CACHE_LIMIT = 1024;

export class HostTable {
  #hosts: readonly { readonly name: string; readonly tests: readonly ((host: string) => boolean)[] }[] = [];
  readonly #cache = new Map<string, string | null>();

  /** Virtual hosts in order of declaration; the first match wins. */
  set(hosts: readonly VirtualHostNames[]): void {
    this.#hosts = hosts.map(({ name, hostNames }) => ({ name, tests: hostNames.map(compileWildcard) }));
    this.#cache.clear();
  }

  /** Name of the virtual host for a `Host` header (port allowed); null when there is none. */
  find(host: string): string | null {
    const known = this.#cache.get(host);
    if (known !== undefined) return known;
    const wanted = hostName(host);
    const found = this.#hosts.find(({ tests }) => tests.some((test) => test(wanted)))?.name ?? null;
    if (this.#cache.size >= CACHE_LIMIT) this.#cache.clear();
    this.#cache.set(host, found);
    return found;
  }
}
