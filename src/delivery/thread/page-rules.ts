/** Cross-origin rules for requests without a feed: those of the application, or of the whole server. */
import { CrossDomainPolicy, type CrossDomainRules } from '../../access/cross-domains.ts';
import type { HostOrigins, PageKind } from '../../core/page-origins.ts';
import { beginning } from './request-admission.ts';
import { DELIVERY_METHODS } from './thread-feed.ts';

const NONE: CrossDomainRules = { urls: [], headers: [] };

/** One per thread. Nothing to close. */
export class PageRules {
  #defaults = NONE;
  #hosts = new Map<string, HostOrigins>();
  /** By rules object, which is replaced with every change of the virtual hosts. */
  #policies = new Map<CrossDomainRules, CrossDomainPolicy>();
  #fallback = this.#policyOf(null);

  /** The current virtual hosts. */
  setHosts(hosts: readonly { readonly name: string; readonly pageOrigins?: HostOrigins | undefined }[]): void {
    this.#hosts = new Map(hosts.flatMap(({ name, pageOrigins }) => (pageOrigins === undefined ? [] : [[name, pageOrigins]])));
    this.#policies.clear();
  }

  /** The server-wide default rules. */
  setDefaults(rules: CrossDomainRules): void {
    this.#defaults = rules;
    this.#policies.clear();
    this.#fallback = this.#policyOf(null);
  }

  /** The rules for a file of an application; those of the server if the application is unknown or has none. */
  find(vhost: string | null, app: string, file: string, query: string): CrossDomainPolicy {
    const host = vhost === null ? undefined : this.#hosts.get(vhost);
    if (host === undefined) return this.#fallback;
    const origins = host.applications.get(app) ?? host.template;
    const rules = origins[kindOf(file, query)] ?? (file.startsWith('thumb.') ? undefined : (origins.llhls ?? origins.hls));
    if (rules === undefined) return this.#fallback;
    const known = this.#policies.get(rules);
    if (known !== undefined) return known;
    const made = this.#policyOf(rules);
    this.#policies.set(rules, made);
    return made;
  }

  /** The rules of the server. */
  get fallback(): CrossDomainPolicy {
    return this.#fallback;
  }

  #policyOf(own: CrossDomainRules | null): CrossDomainPolicy {
    return new CrossDomainPolicy({ defaults: this.#defaults, own, methods: DELIVERY_METHODS });
  }
}

/** The kind of page by file name. Other files than playlists have their names from playlists, and are not requested without a stream. */
function kindOf(file: string, query: string): PageKind {
  const protocol = beginning(file, query);
  return protocol === 'hls' || protocol === 'thumbnail' ? protocol : 'llhls';
}
