/** The API of a server put together: what it drives, its token, its ports. */
import { readFile } from 'node:fs/promises';
import { ALL_METHODS, CrossDomainPolicy } from '../access/cross-domains.ts';
import type { ServerConfig } from '../config/index.ts';
import type { PortOpenings } from '../core/port-openings.ts';
import type { ServerLimits } from '../delivery/server-limits.ts';
import { gitRevision } from '../util/git-revision.ts';
import { listenAddresses } from '../util/listen-addresses.ts';
import type { Logger } from '../util/logger.ts';
import { packageVersion } from '../util/package-version.ts';
import type { Patience } from '../util/patience.ts';
import { ApiServer } from './api-server.ts';
import { ControlPlane, type ControlPlaneOptions } from './control.ts';
import type { Health } from './health.ts';

/** What the API is made of besides its configuration. */
export interface ApiParts extends ControlPlaneOptions {
  readonly accessToken: string;
  readonly health: Health;
  readonly openings: PortOpenings;
  readonly limits: ServerLimits;
  readonly logger: Logger;
  readonly patience: Patience;
}

/** Opens the ports of `Bind/Managers/API`. Resolves with null where there are none. */
export async function startApi(config: ServerConfig, parts: ApiParts): Promise<ApiServer | null> {
  const { api } = config.bind.managers;
  if (api === undefined || (api.port === undefined && api.tlsPort === undefined)) {
    parts.logger.warn({}, 'the API is off: Bind/Managers/API names no Port');
    return null;
  }
  const { host, api: manager } = config.managers;
  const { tls } = host;
  const server = new ApiServer({
    control: new ControlPlane(parts),
    version: packageVersion(),
    revision: gitRevision(),
    accessToken: parts.accessToken,
    accessTokens: (manager.accessTokens ?? [])
      .filter(({ value }) => value !== '')
      .map(({ name, value, access }) => ({ name, value, mayWrite: access === 'write' })),
    hostNames: host.names,
    crossDomains: new CrossDomainPolicy({
      defaults: config.defaults.crossDomains ?? { urls: [], headers: [] },
      own: manager.crossDomains ?? null,
      methods: ALL_METHODS,
    }),
    privacyProtection: config.privacyProtection,
    maxConnections: parts.limits.apiConnections,
    door: parts.limits.apiDoor(),
    patience: parts.patience,
    logger: parts.logger.child({ part: 'api' }),
    health: parts.health,
    addresses: listenAddresses(api.ip.length > 0 ? api.ip : config.ip),
    port: api.port ?? null,
    tls:
      api.tlsPort === undefined || tls === undefined
        ? null
        : {
            port: api.tlsPort,
            load: async () => {
              const chain = tls.chainCertPath === undefined ? '' : await readFile(tls.chainCertPath, 'utf8');
              return { cert: `${await readFile(tls.certPath, 'utf8')}\n${chain}`, key: await readFile(tls.keyPath, 'utf8') };
            },
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
