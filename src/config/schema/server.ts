/** The whole of `Server.xml`. */
import type { Static } from '@sinclair/typebox';
import { LOG_LEVELS } from '../../util/log-levels.js';
import { AlertSchema } from './alert.ts';
import { BindSchema } from './bind.ts';
import { CrossDomainsSchema } from './cross-domains.ts';
import { address, boolean, choice, finishing, firstDuplicate, integer, list, needless, object, optional, path, text } from './field.ts';
import { LimitsSchema, TrustedProxiesSchema } from './limits.ts';
import { ManagersSchema } from './managers.ts';
import { ModulesSchema } from './modules.ts';
import { VirtualHostSchema } from './virtual-host.ts';

const LABEL = { idle: { why: 'it only names the server', label: true } };

const AnalyticsSchema = object(
  'Read for compatibility; nothing is sent',
  {
    userKey: optional(text('Read for compatibility')),
    forwarding: optional(
      object('Read for compatibility', {
        enable: boolean('Read for compatibility', { default: false }),
        collector: optional(text('Read for compatibility')),
      }),
    ),
  },
  needless('nothing is sent'),
);

const StorageSchema = object(
  'Folders for recordings and HLS dumps',
  {
    allowedRoots: list(
      'Folders that recordings and dumps may be written to; relative paths start at the state folder. Default: every folder that the process may write to. A configured DVR folder must be inside one of these folders, too',
      text('Folder'),
      { flatten: 'path', default: [] },
    ),
  },
  { default: {} },
);

const LogSchema = object(
  'Log of the process. An extension of Millrace',
  {
    level: choice(
      'Lowest level that is logged. The option `--log-level` overrides it; the API and a reload change it at run time',
      LOG_LEVELS,
      {
        default: 'info',
      },
    ),
  },
  { default: {} },
);

const DrainSchema = object(
  'Draining of the server before it stops. An extension of Millrace',
  {
    gracePeriod: integer(
      'Longest time between SIGTERM and the stop, ms. Meanwhile the server accepts no new clients, and it stops as soon as all publishers and viewers have left. 0: the server stops at once',
      { default: 0, minimum: 0, maximum: 86_400_000 },
    ),
  },
  { default: {} },
);

const EventLogSchema = object(
  'Writes each event of `GET /v1/events` as a line of JSON to `events.log`. Without this element no event is written. An extension of Millrace',
  {
    path: optional(path('Folder; default: `logs` in the state folder')),
    maxFileMiB: integer(
      'Largest size of the file, MiB. A full file, and any file at the end of a day (UTC), is renamed to `events.log.YYYYMMDD`',
      {
        default: 64,
        minimum: 1,
      },
    ),
    maxFiles: integer('Number of renamed files that are kept; the oldest file is removed', { default: 7, minimum: 0 }),
  },
);

interface ServerFinish {
  readonly bind: { readonly managers: { readonly api?: { readonly tlsPort?: number } } };
  readonly managers: { readonly host: { readonly tls?: unknown } };
  readonly virtualHosts: readonly { readonly name: string }[];
}

/** `<Server>`, the root element of the file; the API has no route for it. */
export const ServerSchema = object(
  'The server',
  {
    version: integer('Version of the file format: 8, 9 or 10', { attribute: 'version', minimum: 8, maximum: 10 }),
    name: text('Name of the server', { default: '', ...LABEL }),
    type: choice('Role of the server', ['origin', 'edge'], { refusal: (value) => `Unknown type: ${value}`, ...LABEL }),
    ip: list(
      'Addresses to listen on. `*`: all IPv4 addresses; `::`: all IPv6 addresses, and all IPv4 addresses too if the list has only IPv6 addresses',
      address('Address'),
      {
        xml: 'IP',
      },
    ),
    privacyProtection: boolean('Hides the addresses of clients in logs and answers', { default: false }),
    stunServer: optional(
      text('STUN server that reports the public address of this server, as `host:port`, with an IPv6 address in brackets'),
    ),
    drain: DrainSchema,
    log: LogSchema,
    modules: ModulesSchema,
    storage: StorageSchema,
    limits: LimitsSchema,
    trustedProxies: TrustedProxiesSchema,
    bind: BindSchema,
    managers: ManagersSchema,
    alert: optional(AlertSchema),
    eventLog: optional(EventLogSchema),
    analytics: optional(AnalyticsSchema),
    defaults: object('Settings for all virtual hosts', { crossDomains: optional(CrossDomainsSchema) }, { default: {} }),
    virtualHosts: list('Virtual hosts', VirtualHostSchema, { flatten: 'virtualHost', default: [] }),
  },
  {
    finish: finishing<ServerFinish>((value, fail) => {
      if (value.bind.managers.api?.tlsPort !== undefined && value.managers.host.tls === undefined)
        fail('Server/Bind/Managers/API/TLSPort needs a certificate: Server/Managers/Host/TLS', 'bind');
      const name = firstDuplicate(value.virtualHosts);
      if (name !== undefined) fail(`Duplicate virtual host name: ${name}`, 'virtualHosts');
    }),
  },
);
/** The typed form of `<Server>`: the settings of a start. */
export type ServerConfig = Static<typeof ServerSchema>;
