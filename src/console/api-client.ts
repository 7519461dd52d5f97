/** Calls the API of the server that the console came from. The token goes into a header and nowhere else. */

const DEADLINE_MS = 15_000;
/** The page is in `/console/`, wherever a proxy has put that. */
const BASE = new URL('../', document.baseURI);

/** An answer that is no success, in the server's own words; status 0: there was no answer. */
export class ApiFault extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** What the server wrapped around an answer. */
interface Envelope {
  readonly message?: string;
  readonly response?: unknown;
  readonly statusCode?: number;
}

/** Names a member of the path: a name with a slash or a question mark would be another path. */
export function at(...names: readonly string[]): string {
  return names.map((name) => `/${encodeURIComponent(name)}`).join('');
}

/** One for each token. */
export class ApiClient {
  readonly #authorization: string;
  readonly #onRefused: () => void;

  /** `onRefused`: the token is not good, or no longer. */
  constructor(token: string, onRefused: () => void) {
    // Whatever the token holds: that of Bearer may have no blanks.
    this.#authorization = `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(token)))}`;
    this.#onRefused = onRefused;
  }

  /** The `response` of the answer; rejects with `ApiFault`. */
  async get<T>(path: string): Promise<T> {
    return (await this.send('GET', path)) as T;
  }

  /** Rejects with `ApiFault`, also when one item of a batch has failed. */
  async send(method: string, path: string, body?: unknown): Promise<unknown> {
    const text = await this.text(method, path, body);
    const parsed = parse(text);
    if (!Array.isArray(parsed)) return (parsed as Envelope | null)?.response;
    for (const { statusCode = 200, message = '' } of parsed as Envelope[]) if (statusCode >= 400) throw new ApiFault(statusCode, message);
    return (parsed as Envelope[]).map(({ response }) => response);
  }

  /** The body of an answer as it is, for what has no envelope. */
  async text(method: string, path: string, body?: unknown): Promise<string> {
    const { status, text } = await this.#fetch(method, path, body);
    if (status < 400) return text;
    if (status === 401) this.#onRefused();
    throw new ApiFault(status, wordsOf(parse(text)) ?? `the server answered ${status}`);
  }

  /** The body of `GET /v1/events`, from behind the event `last` on. Rejects with `ApiFault`. */
  async events(last: string | null, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const headers = { authorization: this.#authorization, ...(last !== null && { 'last-event-id': last }) };
    const { ok, status, body } = await fetch(new URL('v1/events', BASE), { headers, signal, credentials: 'omit', cache: 'no-store' });
    if (!ok || body === null) throw new ApiFault(status, `the server answered ${status}`);
    return body;
  }

  async #fetch(method: string, path: string, body: unknown): Promise<{ status: number; text: string }> {
    const headers: Record<string, string> = { authorization: this.#authorization };
    if (body !== undefined) headers['content-type'] = 'application/json';
    try {
      const answer = await fetch(new URL(path.slice(1), BASE), {
        method,
        headers,
        ...(body !== undefined && { body: JSON.stringify(body) }),
        // Without it a wrong token opens the browser's own dialogue.
        credentials: 'omit',
        cache: 'no-store',
        signal: AbortSignal.timeout(DEADLINE_MS),
      });
      return { status: answer.status, text: await answer.text() };
    } catch {
      throw new ApiFault(0, 'the server does not answer');
    }
  }
}

function wordsOf(parsed: unknown): string | undefined {
  const [first] = Array.isArray(parsed)
    ? (parsed as Envelope[]).filter(({ statusCode = 200 }) => statusCode >= 400)
    : [parsed as Envelope | null];
  const { message, response } = first ?? {};
  return typeof response === 'string' ? `${message}: ${response}` : message;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
