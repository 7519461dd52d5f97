/** The port of `Bind/Managers/Metrics`: `/metrics` and nothing else. */
import { ALL_METHODS, CrossDomainPolicy } from '../access/cross-domains.ts';
import type { ServerConfig } from '../config/index.ts';
import { gitRevision } from '../util/git-revision.ts';
import { listenAddresses } from '../util/listen-addresses.ts';
import { packageVersion } from '../util/package-version.ts';
import { ApiServer } from './api-server.ts';
import { ControlPlane } from './control.ts';
import { metricsRoute, metricsTokens } from './metrics-route.ts';
import type { ApiParts } from './start-api.ts';

/** Opens the port. Resolves with null without one. If it has no token, it requires none. */
export async function startMetrics(config: ServerConfig, parts: ApiParts): Promise<ApiServer | null> {
  const { metrics } = config.bind.managers;
  if (metrics === undefined) return null;
  const accessTokens = metricsTokens(config);
  const server = new ApiServer({
    what: 'metrics',
    routes: [{ ...metricsRoute, open: accessTokens.length === 0 }],
    control: new ControlPlane(parts),
    version: packageVersion(),
    revision: gitRevision(),
    accessToken: parts.accessToken,
    accessTokens,
    hostNames: ['*'],
    crossDomains: new CrossDomainPolicy({ defaults: { urls: [], headers: [] }, own: null, methods: ALL_METHODS }),
    privacyProtection: config.privacyProtection,
    maxConnections: parts.limits.apiConnections,
    limiter: parts.limits.apiLimiter(),
    timeoutScale: parts.timeoutScale,
    logger: parts.logger.child({ part: 'metrics' }),
    health: parts.health,
    addresses: listenAddresses(metrics.ip.length > 0 ? metrics.ip : config.ip),
    port: metrics.port,
    tls: null,
  });
  try {
    await parts.openings.open(`metrics port ${metrics.port} (Bind/Managers/Metrics)`, () => server.listen());
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}
