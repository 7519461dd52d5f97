/** Assembles the API of a server: control plane, token, ports. */
import { ALL_METHODS, CrossDomainPolicy } from '../access/cross-domains.ts';
import type { ServerConfig } from '../config/index.ts';
import type { PortOpenings } from '../core/port-openings.ts';
import type { ServerLimits } from '../delivery/server-limits.ts';
import { HostCertificate } from '../delivery/tls/host-certificate.ts';
import { gitRevision } from '../util/git-revision.ts';
import { listenAddresses } from '../util/listen-addresses.ts';
import type { Logger } from '../util/logger.ts';
import { packageVersion } from '../util/package-version.ts';
import type { TimeoutScale } from '../util/timeout-scale.ts';
import { type ApiRules, ApiServer } from './api-server.ts';

import { ControlPlane, type ControlPlaneOptions } from './control.ts';
import type { Health } from './health.ts';
import { listenersOf } from './listeners.ts';
import { metricsTokens } from './metrics-route.ts';

/** Dependencies of the API besides its configuration. */
export interface ApiParts extends ControlPlaneOptions {
  readonly accessToken: string;
  readonly health: Health;
  readonly openings: PortOpenings;
  readonly limits: ServerLimits;
  readonly logger: Logger;
  readonly timeoutScale: TimeoutScale;
}

/** Access rules of a configuration; `accessToken` is the effective token, because the configuration may have none. */
export function apiRules(config: ServerConfig, accessToken: string): ApiRules {
  const { host, api } = config.managers;
  const { defaults } = config;
  const further = (api.accessTokens ?? []).filter(({ value }) => value !== '');
  return {
    accessToken,
    accessTokens: [...further.map(({ name, value, access }) => ({ name, value, mayWrite: access === 'write' })), ...metricsTokens(config)],
    hostNames: host.names,
    crossDomains: new CrossDomainPolicy({
      defaults: defaults.crossDomains ?? { urls: [], headers: [] },
      own: api.crossDomains ?? null,
      methods: ALL_METHODS,
    }),
  };
}

/** Opens the ports of `Bind/Managers/API`. Resolves with null without any. */
export async function startApi(config: ServerConfig, parts: ApiParts): Promise<ApiServer | null> {
  const { api } = config.bind.managers;
  if (api === undefined || (api.port === undefined && api.tlsPort === undefined)) {
    parts.logger.warn({}, 'the API is off: Bind/Managers/API names no Port');
    return null;
  }
  const { host } = config.managers;
  const logger = parts.logger.child({ part: 'api' });
  const certificate =
    host.tls === undefined || api.tlsPort === undefined
      ? null
      : new HostCertificate({
          tls: host.tls,
          what: 'certificate of the API',
          whoseFault: 'the API',
          logger,
          conditions: parts.health.conditions,
          onFiles: async () => {
            if ((await certificate?.renew()) === true && certificate?.pair) server.setCertificate(certificate.pair);
          },
        });
  const server: ApiServer = new ApiServer({
    control: new ControlPlane(parts),
    version: packageVersion(),
    revision: gitRevision(),
    ...apiRules(config, parts.accessToken),
    privacyProtection: config.privacyProtection,
    maxConnections: parts.limits.apiConnections,
    limiter: parts.limits.apiLimiter(),
    timeoutScale: parts.timeoutScale,
    logger,
    health: parts.health,
    listeners: listenersOf(config),
    mediaHosts: listenAddresses(config.ip),
    addresses: listenAddresses(api.ip.length > 0 ? api.ip : config.ip),
    port: api.port ?? null,
    tls:
      certificate === null || api.tlsPort === undefined
        ? null
        : {
            port: api.tlsPort,
            load: () => certificate.reload(),
            http2: config.modules.http2.enable,
            release: () => certificate.close(),
          },
  });
  try {
    await parts.openings.open(`API port ${api.port ?? api.tlsPort} (Bind/Managers/API)`, () => server.listen());
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}
