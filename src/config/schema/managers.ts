/** The management API: under which names, with which credential. */
import type { Static } from '@sinclair/typebox';
import { CrossDomainsSchema } from './cross-domains.ts';
import { as, boolean, list, object, optional, path, text } from './field.ts';
import { TlsSchema } from './tls.ts';

const ManagersHostSchema = object(
  'Under which names the API is reached',
  {
    names: list('Host names or addresses; `*` means any', text('Host name', { form: 'host' }), { flatten: 'name', default: ['*'] }),
    tls: optional(as(TlsSchema, 'Certificate for the TLS port', { xml: 'TLS' })),
  },
  { default: {} },
);

const ManagersApiSchema = object(
  'The API',
  {
    accessToken: text('Credential of the clients; empty has one made at the first start', { default: '' }),
    crossDomains: optional(CrossDomainsSchema),
    storage: optional(
      object('Read for compatibility', {
        enabled: boolean('Read for compatibility', { default: true }),
        path: path('Read for compatibility', { default: 'conf/api_data' }),
      }),
    ),
  },
  { xml: 'API', default: {} },
);

/** `<Managers>`; the ports are in `<Bind>`. */
export const ManagersSchema = object('Management API', { host: ManagersHostSchema, api: ManagersApiSchema }, { default: {} });
/** The typed form of `<Managers>`; it is there, with defaults, also where the file has no such element. */
export type ManagersConfig = Static<typeof ManagersSchema>;
