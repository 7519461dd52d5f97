/** The API client with a judge between it and the server: every request and answer is compared with the server's OpenAPI document. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { MillraceClient } from '../../src/client/index.ts';

interface Content {
  readonly content?: Readonly<Record<string, object>>;
}
interface Operation {
  readonly operationId: string;
  readonly requestBody?: Content & { readonly required?: boolean };
  readonly responses: Readonly<Record<string, Content & { readonly $ref?: string }>>;
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly responses: Readonly<Record<string, Content>> };
}

const ID = 'openapi';
const EVENT_STREAM = 'text/event-stream';

/** The results of calls through `client`. */
export class JudgedClient {
  readonly client: MillraceClient;
  /** Operations that succeeded, such as `get /v1/version`. */
  readonly succeeded = new Set<string>();
  /** Sentences about requests and answers that contradict the document. */
  readonly faults: string[] = [];
  readonly #document: Document;
  readonly #operations: readonly {
    readonly name: string;
    readonly pattern: RegExp;
    readonly pointer: string;
    readonly operation: Operation;
  }[];
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
  readonly #compiled = new Map<string, ValidateFunction>();

  private constructor(url: string, token: string, document: Document) {
    this.#document = document;
    this.#ajv.addSchema(document, ID);
    this.#operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        name: `${method} ${path}`,
        // As the server reads paths: names contain no slash, and names of applications no colon.
        pattern: new RegExp(`^${method} ${path.replace(/\{(\w+)\}/g, (_, name) => (name === 'app' ? '[^/:]+' : '[^/]+'))}$`),
        pointer: `#/paths/${path.replaceAll('~', '~0').replaceAll('/', '~1')}/${method}`,
        operation,
      })),
    );
    this.client = new MillraceClient({ url, token, fetch: (target, init) => this.#watched(url, target, init) });
  }

  static async start(url: string, token: string): Promise<JudgedClient> {
    const document = await new MillraceClient({ url, token }).get('/openapi.json');
    return new JudgedClient(url, token, document as unknown as Document);
  }

  /** Every operation of the document, named as in `succeeded`. */
  get all(): string[] {
    return this.#operations.map(({ name }) => name);
  }

  /** Judges an event of `GET` `path`. */
  judgeEvent(path: string, event: unknown): void {
    const found = this.#operations.find(({ name }) => name === `get ${path}`);
    if (found === undefined) return void this.faults.push(`${path} is no operation of the document`);
    this.#check(`event of ${path}`, `${found.pointer}/responses/200`, found.operation.responses['200'], EVENT_STREAM, event);
  }

  async #watched(base: string, target: string, init: RequestInit): Promise<Response> {
    const answer = await fetch(target, init);
    const method = (init.method ?? 'GET').toLowerCase();
    // The response does not end: its reader passes the events to `judgeEvent`.
    const isStream = answer.headers.get('content-type')?.startsWith(EVENT_STREAM) === true;
    this.#judge(`${method} ${target.slice(base.length).replace(/\?.*$/, '')}`, init, answer, isStream ? null : await answer.clone().text());
    return answer;
  }

  #judge(asked: string, { body }: RequestInit, { status, ok, headers }: Response, text: string | null): void {
    // If two operations match, the one with fewer names is meant: `/v1/vhosts:reloadAllCertificates`.
    const [found] = this.#operations.filter(({ pattern }) => pattern.test(asked)).sort((a, b) => names(a.name) - names(b.name));
    if (found === undefined) return void this.faults.push(`${asked} is no operation of the document`);
    const { name, pointer, operation } = found;
    if (ok) {
      if (status !== 207) this.succeeded.add(name);
      if (body === undefined && operation.requestBody?.required === true)
        this.faults.push(`${name} succeeded without the body that it requires`);
      if (typeof body === 'string')
        this.#check(`${name}, request`, `${pointer}/requestBody`, operation.requestBody, 'application/json', JSON.parse(body));
    }
    const key = operation.responses[status] === undefined ? 'default' : String(status);
    const { $ref } = operation.responses[key] ?? {};
    const described = $ref === undefined ? operation.responses[key] : this.#document.components.responses[$ref.split('/').at(-1) ?? ''];
    if (described === undefined) return void this.faults.push(`${name} answered ${status}, which the document does not have`);
    if (ok && key === 'default') this.faults.push(`${name} answered ${status}, which is no success of the document`);
    if (text === null) return;
    const type = (headers.get('content-type') ?? '').replace(/;.*$/, '');
    const content: unknown = type === 'application/json' ? JSON.parse(text) : text;
    this.#check(`${name}, answer ${status}`, $ref ?? `${pointer}/responses/${key}`, described, type, content);
  }

  #check(what: string, pointer: string, { content }: Content = {}, type: string, value: unknown): void {
    if (content?.[type] === undefined) return void this.faults.push(`${what}: the document has no ${type} for it`);
    const place = `${pointer}/content/${type.replace('/', '~1')}/schema`;
    let validate = this.#compiled.get(place);
    if (validate === undefined) {
      validate = this.#ajv.compile({ $ref: `${ID}${encodeURI(place)}` });
      this.#compiled.set(place, validate);
    }
    if (!validate(value)) this.faults.push(`${what}: ${this.#ajv.errorsText(validate.errors)} in ${JSON.stringify(value)}`);
  }
}

function names(path: string): number {
  return path.split('{').length;
}
