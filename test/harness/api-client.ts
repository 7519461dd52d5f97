/** Calls the REST API as an operator's script does. */

const DEADLINE_MS = 10_000;

/** A response; `body` is the parsed JSON, null without a body. */
export interface ApiAnswer {
  readonly status: number;
  readonly body: unknown;
}

export class ApiClient {
  readonly base: string;
  /** Value of the Authorization header. */
  readonly authorization: string;

  constructor(base: string, accessToken: string) {
    this.base = base;
    this.authorization = `Basic ${Buffer.from(accessToken).toString('base64')}`;
  }

  async call(method: string, path: string, body?: unknown): Promise<ApiAnswer> {
    const headers: Record<string, string> = { authorization: this.authorization };
    if (body !== undefined) headers['content-type'] = 'application/json';
    const answer = await fetch(this.base + path, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(DEADLINE_MS),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === '' ? null : (JSON.parse(text) as unknown) };
  }

  /** GETs `path` and returns the `response` member of the envelope; throws unless the status is 200. */
  async get<T>(path: string): Promise<T> {
    const { status, body } = await this.call('GET', path);
    if (status !== 200) throw new Error(`GET ${path} answered ${status}: ${JSON.stringify(body)}`);
    return (body as { response: T }).response;
  }

  /** POSTs `body`; throws unless the status is 200 or 201. */
  async create(path: string, body: unknown): Promise<void> {
    const answer = await this.call('POST', path, body);
    if (answer.status !== 200 && answer.status !== 201) {
      throw new Error(`POST ${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    }
  }
}

/** Paths of the objects the tests use. */
export const apiPath = {
  vhost: (vhost: string): string => `/v1/vhosts/${vhost}`,
  app: (vhost: string, app: string): string => `/v1/vhosts/${vhost}/apps/${app}`,
  stream: (stream: string, app = 'app', vhost = 'default'): string => `/v1/vhosts/${vhost}/apps/${app}/streams/${stream}`,
  stats: (stream: string, app = 'app', vhost = 'default'): string => `/v1/stats/current/vhosts/${vhost}/apps/${app}/streams/${stream}`,
};

/** The used part of stream information. */
export interface StreamInformation {
  readonly input: {
    readonly createdTime: string;
    readonly sourceType: string;
    readonly sourceUrl: string;
    readonly tracks: readonly TrackInformation[];
  };
  readonly outputs: readonly { readonly name: string; readonly tracks: readonly TrackInformation[] }[];
}

export interface TrackInformation {
  readonly type: string;
  readonly video?: {
    readonly codec: string;
    readonly width: number;
    readonly height: number;
    readonly bitrateLatest: string;
    readonly bitrateAvg: string;
    readonly framerateLatest: number;
    readonly framerateAvg: number;
    readonly keyFrameIntervalLatest: number;
    readonly keyFrameIntervalAvg: number;
    readonly hasBframes: boolean;
  };
  readonly audio?: {
    readonly codec: string;
    readonly samplerate: number;
    readonly channel: number;
    readonly bitrateLatest: string;
    readonly bitrateAvg: string;
  };
}

/** The used part of version 1 statistics. */
export interface Statistics {
  readonly connections: { readonly llhls: number; readonly hlsv3: number };
  readonly totalBytesIn: number;
  readonly totalBytesOut: number;
  readonly totalConnections: number;
}
