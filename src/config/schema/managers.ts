/** The management API: under which names, with which credential. */
import type { Static } from '@sinclair/typebox';
import { TOKEN_RULE, tokenDigest } from '../../util/token-digest.ts';
import { CrossDomainsSchema } from './cross-domains.ts';
import { as, boolean, choice, type Fail, finishing, integer, list, needless, object, optional, path, text } from './field.ts';
import { TlsSchema } from './tls.ts';

interface TokenFinish {
  name: string;
  value: string;
}

interface ApiFinish {
  accessToken: string;
  accessTokens?: readonly TokenFinish[];
}

const ManagersHostSchema = object(
  'Host names and certificate of the API',
  {
    names: list('Host names or addresses; `*`: any', text('Host name', { form: 'host' }), { flatten: 'name', default: ['*'] }),
    tls: optional(as(TlsSchema, 'Certificate for the TLS port', { xml: 'TLS' })),
  },
  { default: {} },
);

const AccessTokenSchema = object(
  'One further access token',
  {
    name: text('Name in the log and in answers'),
    value: text('The token, or `sha256:` and the SHA-256 of the token in hexadecimal. Empty: the token is not valid', { default: '' }),
    access: choice('`write`: all requests; `read`: only requests that change nothing, and answers without secrets', ['read', 'write'], {
      default: 'read',
    }),
  },
  {
    finish: finishing<TokenFinish>(({ name, value }, fail) => {
      if (name === '') fail('Name must not be empty', 'name');
      if (tokenDigest(value) === null) fail(`Value of the token '${name}' ${TOKEN_RULE}`, 'value');
    }),
  },
);

const ManagersApiSchema = object(
  'The API',
  {
    accessToken: text(
      'Access token, or `sha256:` and the SHA-256 of the token in hexadecimal. Empty: the server generates a token at its first start',
      {
        default: '',
      },
    ),
    accessTokens: optional(
      list('Further access tokens; each may be read-only. An extension of Millrace', AccessTokenSchema, { flatten: 'token' }),
    ),
    crossDomains: optional(CrossDomainsSchema),
    storage: optional(
      object(
        'Read for compatibility',
        {
          enabled: boolean('Read for compatibility', { default: true }),
          path: path('Read for compatibility', { default: 'conf/api_data' }),
        },
        needless('what the API creates is in the state folder'),
      ),
    ),
  },
  { xml: 'API', default: {}, finish: finishing<ApiFinish>(distinctTokens) },
);

/** With two equal tokens it would be unclear whose rights count. No error text shows a token. */
function distinctTokens({ accessToken, accessTokens = [] }: ApiFinish, fail: Fail): void {
  if (tokenDigest(accessToken) === null) fail(`AccessToken ${TOKEN_RULE}`, 'accessToken');
  const names = new Set<string>();
  const holders = new Map([[keyOf(accessToken), 'AccessToken']]);
  for (const { name, value } of accessTokens) {
    if (names.has(name)) fail(`AccessTokens has two tokens of the name '${name}'`, 'accessTokens');
    names.add(name);
    if (value === '') continue;
    const holder = holders.get(keyOf(value));
    if (holder !== undefined) fail(`Value of the token '${name}' is that of '${holder}'`, 'accessTokens');
    holders.set(keyOf(value), name);
  }
}

function keyOf(value: string): string | undefined {
  return tokenDigest(value)?.toString('hex');
}

/** `<Managers><Metrics>`. */
const ManagersMetricsSchema = object(
  'Access to `/metrics`, and the limit of its series. An extension of Millrace',
  {
    accessToken: text(
      'Token that is valid only for `/metrics`, at the port of the API and at the port of `Bind/Managers/Metrics`; or `sha256:` and the SHA-256 of the token in hexadecimal. Empty: the port of the API requires an access token of the API, and the port of `Bind/Managers/Metrics` requires no token',
      { default: '' },
    ),
    maxStreams: integer('Maximum number of streams, and of applications, with their own labels; all others share one label', {
      default: 500,
      minimum: 0,
      maximum: 10_000,
    }),
  },
  { default: {} },
);

interface ManagersFinish {
  readonly api: ApiFinish;
  readonly metrics: { readonly accessToken: string };
}

/** Like `distinctTokens`, for the token with fewer rights. */
function distinctMetricsToken({ api, metrics: { accessToken } }: ManagersFinish, fail: Fail): void {
  if (accessToken === '') return;
  if (tokenDigest(accessToken) === null) fail(`AccessToken of Managers/Metrics ${TOKEN_RULE}`, 'metrics');
  const others = [{ name: 'Managers/API/AccessToken', value: api.accessToken }, ...(api.accessTokens ?? [])];
  const same = others.find(({ value }) => value !== '' && keyOf(value) === keyOf(accessToken));
  if (same !== undefined) fail(`AccessToken of Managers/Metrics is that of '${same.name}'`, 'metrics');
}

/** `<Managers>`; the ports are in `<Bind>`. */
export const ManagersSchema = object(
  'Management API',
  { host: ManagersHostSchema, api: ManagersApiSchema, metrics: ManagersMetricsSchema },
  { default: {}, finish: finishing<ManagersFinish>(distinctMetricsToken) },
);
/** The typed form of `<Managers>`; it is there, with defaults, also where the file has no such element. */
export type ManagersConfig = Static<typeof ManagersSchema>;
