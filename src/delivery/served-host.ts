import { accessSettingsOf } from '../access/access-controls.ts';
import { hostKeysOf } from '../access/access-keys.ts';
import { hostOriginsOf } from '../core/page-origins.ts';
import type { VirtualHost } from '../core/virtual-host.ts';
import type { ServedHost } from './thread-protocol.ts';

/** A virtual host as delivery threads see it. */
export function servedHostOf(vhost: VirtualHost): ServedHost {
  const { name, hostNames, definition } = vhost;
  const { origins, originMapStore } = definition.config;
  const hasOrigins = (origins?.origin.length ?? 0) > 0 || originMapStore !== undefined;
  const pageOrigins = hostOriginsOf(vhost);
  return { name, hostNames, hasOrigins, pageOrigins, access: accessSettingsOf(definition.config), keys: hostKeysOf(vhost) };
}
