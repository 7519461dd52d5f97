/** Query keys with credentials for this server, which must not be passed on to other servers. */
import type { VirtualHost } from '../core/virtual-host.ts';
import { LIST_OF } from './access-keys.ts';
import { QUERY_KEYS } from './key-ring.ts';

/**
 * The query keys of secrets that `app` requires, in lower case: of a signed policy, and of lists of keys. Other keys have other meanings.
 */
export function secretQueryKeys(vhost: VirtualHost | undefined, app: string): readonly string[] {
  if (vhost === undefined) return [];
  const { signedPolicy } = vhost.definition.config;
  const lists = vhost.applications.get(app)?.definition.config ?? vhost.template?.config;
  const shown = (['incoming', 'outgoing'] as const).filter((direction) => lists?.[LIST_OF[direction]] !== undefined);
  const keys = shown.map((direction) => QUERY_KEYS[direction]);
  if (signedPolicy !== undefined) keys.push(signedPolicy.policyQueryKeyName, signedPolicy.signatureQueryKeyName);
  return keys.map((key) => key.toLowerCase());
}
