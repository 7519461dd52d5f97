/** An API server on a free port with a control plane in memory behind it, and a client that sends raw requests. */
import { connect } from 'node:net';
import { CrossDomainPolicy } from '../../src/access/cross-domains.ts';
import { ApiServer, type ApiServerOptions } from '../../src/api/api-server.ts';
import type { JsonObject } from '../../src/api/json/json-value.ts';
import type { Logger } from '../../src/util/logger.ts';
import { FakeControlPlane } from '../fakes/fake-control-plane.ts';

export const TOKEN = 'millrace-access-token';
export const AUTHORIZATION = `Basic ${Buffer.from(TOKEN).toString('base64')}`;

const silent: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };

/** What came back, header names in lower case. */
export interface RawAnswer {
  readonly status: number;
  readonly reason: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export interface RawRequest {
  readonly method?: string;
  readonly path: string;
  /** Added to `Host` and `Authorization`; null leaves one of these out. */
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly body?: string | Buffer;
  readonly version?: string;
}

export const anyOrigin = { urls: ['*'], headers: [] };

/** Default application of the file-declared virtual host `default`. */
export const FILE_APPLICATION: JsonObject = {
  name: 'app',
  type: 'live',
  outputProfiles: {
    outputProfile: [
      {
        name: 'bypass_stream',
        outputStreamName: '${OriginStreamName}',
        encodes: { videos: [{ name: 'bypass_video', bypass: 'true' }] },
      },
    ],
  },
  providers: { rtmp: {} },
  publishers: { llhls: {} },
};

/** Starts a server with one file-declared virtual host, `default`. */
export async function startApi(overrides: Partial<ApiServerOptions> = {}): Promise<ApiHarness> {
  const control = new FakeControlPlane();
  control.declare({ name: 'default', distribution: 'ovenmediaengine.com', host: { names: ['*'] } }, [FILE_APPLICATION]);
  const server = new ApiServer({
    control,
    version: '0.1.0',
    accessToken: TOKEN,
    hostNames: ['*'],
    crossDomains: new CrossDomainPolicy({ defaults: anyOrigin, own: anyOrigin, methods: 'OPTIONS, HEAD, GET, POST, PUT, PATCH, DELETE' }),
    logger: silent,
    addresses: ['127.0.0.1'],
    port: 0,
    tls: null,
    ...overrides,
  });
  await server.listen();
  return new ApiHarness(server, control);
}

export class ApiHarness {
  readonly server: ApiServer;
  readonly control: FakeControlPlane;

  constructor(server: ApiServer, control: FakeControlPlane) {
    this.server = server;
    this.control = control;
  }

  get port(): number {
    return this.server.addresses[0]?.port ?? 0;
  }

  /** Sends one request on a connection of its own. */
  send(request: RawRequest): Promise<RawAnswer> {
    return exchange(this.port, serialize(request)).then((bytes) => parseAnswer(bytes, request.method === 'HEAD'));
  }

  /** Sends a request with a JSON body, or without one, and gives the status and the parsed answer. */
  async call(method: string, path: string, body?: unknown): Promise<{ status: number; json: unknown }> {
    const answer = await this.send({ method, path, ...(body !== undefined && { body: JSON.stringify(body) }) });
    return { status: answer.status, json: JSON.parse(answer.body) };
  }

  /** Sends bytes as they are; gives everything that came until the server closed the connection or `until` holds. */
  raw(bytes: string | Buffer): Promise<string> {
    return exchange(this.port, bytes);
  }

  close(): Promise<void> {
    return this.server.close();
  }
}

function serialize({ method = 'GET', path, headers = {}, body, version = '1.1' }: RawRequest): Buffer {
  const all: Record<string, string | null> = { Host: '127.0.0.1', Authorization: AUTHORIZATION, Connection: 'close', ...headers };
  if (body !== undefined) all['Content-Length'] ??= String(Buffer.byteLength(body));
  const lines = Object.entries(all).flatMap(([name, value]) => (value === null ? [] : [`${name}: ${value}`]));
  const head = Buffer.from(`${method} ${path} HTTP/${version}\r\n${lines.join('\r\n')}\r\n\r\n`, 'utf8');
  return body === undefined ? head : Buffer.concat([head, typeof body === 'string' ? Buffer.from(body, 'utf8') : body]);
}

/** Sends and collects until the server closes. */
function exchange(port: number, bytes: string | Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' });
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.once('close', () => resolve(Buffer.concat(chunks).toString('utf8')));
    socket.once('error', (error) => (chunks.length > 0 ? undefined : reject(error)));
    socket.write(bytes);
  });
}

function parseAnswer(text: string, isHead: boolean): RawAnswer {
  const end = text.indexOf('\r\n\r\n');
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n');
  const match = /^HTTP\/1\.1 (\d{3}) (.*)$/.exec(statusLine);
  if (match === null) throw new Error(`not an answer: ${JSON.stringify(text.slice(0, 200))}`);
  const headers = new Map(lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]));
  const body = text.slice(end + 4);
  if (isHead && body !== '') throw new Error('the answer to HEAD has a body');
  return { status: Number(match[1]), reason: match[2] ?? '', headers, body };
}
