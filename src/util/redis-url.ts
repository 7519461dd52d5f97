/** The location of Redis as a URL: one server, a Sentinel set or a cluster. */

/** A server that is reached by name or address. */
export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

/** The parts of a URL. User and password are not part of it: they have their own settings. */
export interface RedisPlace {
  readonly kind: 'server' | 'sentinel' | 'cluster';
  readonly tls: boolean;
  /** At least one: the server, some Sentinels, or some members of the cluster. */
  readonly nodes: readonly RedisNode[];
  /** Name of the server at the Sentinels; '' for other kinds. */
  readonly master: string;
  readonly database: number;
}

const FORM =
  'redis://host:port/database, redis+sentinel://host:port,host:port/master/database or redis+cluster://host:port,host:port; rediss with TLS';
const URL_FORM = /^(redis|rediss)(?:\+(sentinel|cluster))?:\/\/([^/?#\s]+)((?:\/[^/?#\s]*)*)$/i;
const NODE = /^(?:\[([\da-f:.]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/i;
const DEFAULT_PORT = 6379;
const SENTINEL_PORT = 26_379;
const MAX_PORT = 65_535;
const MAX_DATABASE = 65_535;
/** Limit of nodes: more would not be asked before the first of them answers. */
const MAX_NODES = 64;

/** Reads `host:port`, or `[address]:port`; null for anything else. */
export function redisNode(text: string, defaultPort: number | null = null): RedisNode | null {
  const [, address, name, digits] = NODE.exec(text) ?? [];
  const host = address ?? name;
  const port = digits === undefined ? defaultPort : Number(digits);
  return host === undefined || port === null || port < 1 || port > MAX_PORT ? null : { host, port };
}

/** Throws an error whose text gives the required form. */
export function redisPlace(url: string): RedisPlace {
  const [, scheme = '', mode = 'server', authority = '', path = ''] = URL_FORM.exec(url) ?? [];
  if (authority === '') throw new Error(`must be a URL of the form ${FORM}`);
  if (authority.includes('@')) throw new Error('must not have a user or password in it: Username and Auth are for them');
  const kind = mode.toLowerCase() as RedisPlace['kind'];
  const texts = authority.split(',');
  if (texts.length > MAX_NODES) throw new Error(`must name at most ${MAX_NODES} servers`);
  if (kind === 'server' && texts.length > 1) throw new Error('names several servers: redis+sentinel:// or redis+cluster:// is meant');
  const nodes = texts.map((text) => {
    const node = redisNode(text, kind === 'sentinel' ? SENTINEL_PORT : DEFAULT_PORT);
    if (node === null) throw new Error(`must name servers as host:port, but has '${text}'`);
    return node;
  });
  const steps = path.split('/').slice(1);
  const master = kind === 'sentinel' ? (steps.shift() ?? '') : '';
  if (kind === 'sentinel' && master === '') throw new Error('must end with the name of the master that the Sentinels watch: …/name');
  const [database = ''] = steps;
  const number = database === '' ? 0 : Number(database);
  if (steps.length > 1 || !Number.isInteger(number) || number < 0 || number > MAX_DATABASE) {
    throw new Error(`must end with the number of a database, but ends with '${steps.join('/')}'`);
  }
  if (kind === 'cluster' && number !== 0) throw new Error('names a database: a cluster has only the first');
  return { kind, tls: scheme.toLowerCase() === 'rediss', nodes, master, database: number };
}
