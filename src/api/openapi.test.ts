import { describe, expect, test } from 'vitest';
import { openApiDocument } from './openapi.ts';
import { REQUEST_EXAMPLES } from './openapi-examples.ts';
import { OPERATION_NAMES } from './operation-names.ts';
import { routes } from './routes.ts';

// biome-ignore lint/suspicious/noExplicitAny: the document is JSON of any form; what it must hold is asserted
const document: any = openApiDocument(routes, '1.2.3');
const operations = Object.entries<Record<string, Operation>>(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly responses: Readonly<Record<string, unknown>>;
}

/** Every `$ref` below `value`. */
function references(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(references);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => (key === '$ref' ? [String(inner)] : references(inner)));
}

describe('the OpenAPI document', () => {
  test('is data, of this version', () => {
    expect(JSON.parse(JSON.stringify(document))).toEqual(document);
    expect([document.openapi, document.info.version]).toEqual(['3.1.0', '1.2.3']);
  });

  test('has every route once, with its parameters', () => {
    const named = operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`);
    expect(named.sort()).toEqual(routes.map(({ method, path }) => `${method} ${path}`).sort());
    for (const { path, operation } of operations) {
      const inPath = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path');
      expect(inPath.map(({ name }) => `{${name}}`)).toEqual(path.match(/\{\w+\}/g) ?? []);
    }
    const queried = operations.filter(({ operation }) => (operation.parameters ?? []).some((parameter) => parameter.in === 'query'));
    expect(queried.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([
      'delete /v1/vhosts/{vhost}/apps/{app}/streams/{stream}/sessions/{session}',
      'get /v1/events',
      'get /v1/stats/current/vhosts/{vhost}/apps/{app}/streams/{stream}/sessions/{session}',
      'get /v1/vhosts/{vhost}/apps/{app}/streams/{stream}/sessions',
      'get /v2/internals/srt',
      'get /v2/logs',
      'get /v2/vhosts/{vhost}/apps/{app}/recordings',
      'get /v2/vhosts/{vhost}/apps/{app}/recordings/playlist.m3u8',
      'get /v2/vhosts/{vhost}/apps/{app}/recordings/{recording}/{file}',
      'get /v2/vhosts/{vhost}/apps/{app}/streams',
      'get /v2/vhosts/{vhost}/apps/{app}/streams/{stream}/sessions',
    ]);
  });

  test('names each operation once, by a verb of its method and a noun', () => {
    expect(Object.keys(OPERATION_NAMES).sort()).toEqual(routes.map(({ method, path }) => `${method} ${path}`).sort());
    const names = operations.map(({ operation }) => operation.operationId);
    expect(new Set(names).size).toBe(names.length);
    const verbs: Readonly<Record<string, RegExp>> = {
      get: /^(?:get|list|follow|check)[A-Z][A-Za-z0-9]+$/,
      post: /^(?:create|start|stop|send|find|reload|drain|resume|conclude)[A-Z][A-Za-z]+$/,
      patch: /^(?:update|replace|set)[A-Z][A-Za-z]+$/,
      delete: /^delete[A-Z][A-Za-z]+$/,
    };
    expect(operations.filter(({ method, operation }) => verbs[method]?.test(operation.operationId) !== true)).toEqual([]);
    // Collections are listed, and single items are got.
    const items = operations.filter(({ method, path }) => method === 'get' && /^\/v1\/vhosts.*\/\{\w+\}$/.test(path));
    expect(items.map(({ operation }) => operation.operationId).filter((name) => !name.startsWith('get'))).toEqual([]);
  });

  test('refers to existing schemas and responses only, and has no unused ones', () => {
    const found = new Set(references(document).map((reference) => reference.replace('#/components/', '')));
    const { schemas, responses } = document.components;
    const present = Object.entries({ schemas, responses }).flatMap(([kind, all]) => Object.keys(all).map((name) => `${kind}/${name}`));
    expect([...found].sort()).toEqual(present.sort());
  });

  test('offers Basic or Bearer authentication, each sufficient alone', () => {
    expect(document.security).toEqual([{ accessToken: [] }, { bearerToken: [] }]);
    const { accessToken, bearerToken } = document.components.securitySchemes;
    expect([accessToken, bearerToken]).toMatchObject([
      { type: 'http', scheme: 'basic' },
      { type: 'http', scheme: 'bearer' },
    ]);
  });

  test('tags each operation with one of its tags', () => {
    const tags = operations.map(({ path, operation }) => [path, ...(operation as unknown as { tags: string[] }).tags]);
    expect(tags.filter((tag) => tag.length !== 2)).toEqual([]);
    expect([...new Set(tags.map(([, tag]) => tag))].sort()).toEqual(document.tags.map(({ name }: { name: string }) => name).sort());
    const about = new Map(tags.map(([path = '', tag]) => [path.replace('/v1/vhosts/{vhost}/apps/{app}', 'APP'), tag]));
    const samples = [
      '/v1/vhosts',
      'APP',
      'APP:records',
      'APP/streams/{stream}',
      'APP/streams/{stream}:hlsDumps',
      'APP/playTokens',
      '/health',
    ];
    expect(samples.map((path) => about.get(path))).toEqual([
      'Virtual hosts',
      'Applications',
      'Recordings',
      'Streams',
      'Dumps',
      'Keys',
      'Server',
    ]);
  });

  test('lists the statuses of success', () => {
    const statuses = (path: string, method: string) => Object.keys(document.paths[path][method].responses);
    expect(statuses('/v1/version', 'get')).toEqual(['200', '401', 'default']);
    expect(statuses('/v1/vhosts', 'post')).toEqual(['200', '207', '401', 'default']);
    expect(statuses('/v1/vhosts/{vhost}/apps/{app}/streams', 'post')).toEqual(['201', '401', 'default']);
    for (const { path, method } of routes.filter(({ success }) => success === null)) {
      expect(statuses(path, method.toLowerCase())).toEqual(['401', 'default']);
    }
  });

  test('describes the events as a stream of LiveEvent', () => {
    const { 200: success } = document.paths['/v1/events'].get.responses;
    expect(success.content).toEqual({ 'text/event-stream': { schema: { $ref: '#/components/schemas/LiveEvent' } } });
    expect(document.components.schemas.LiveEvent.required).toEqual(['type']);
  });

  test('describes the failure of a batch as a whole and for each item', () => {
    const failed = (path: string) => document.paths[path].post.responses.default.content['application/json'].schema;
    const one = { $ref: '#/components/schemas/Error' };
    expect(failed('/v1/vhosts')).toEqual({ anyOf: [one, { type: 'array', items: one }] });
    expect(failed('/v1/vhosts/{vhost}/apps/{app}:startPush')).toEqual(one);
  });

  test('names the headers of responses with definitions and of failures', () => {
    const telling = operations.flatMap(({ method, path, operation }) =>
      Object.entries(operation.responses as Record<string, { headers?: object }>)
        .filter(([, { headers = {} }]) => 'Millrace-Ineffective' in headers)
        .map(([status]) => `${method} ${path} ${status}`),
    );
    const apps = '/v1/vhosts/{vhost}/apps';
    const profiles = `${apps}/{app}/outputProfiles`;
    const batches = ['/v1/vhosts', apps, profiles].flatMap((path) => [`post ${path} 200`, `post ${path} 207`]);
    const single = [`${apps}/{app}`, `${profiles}/{profile}`].flatMap((path) => [`get ${path} 200`, `patch ${path} 200`]);
    expect(telling.sort()).toEqual([...batches, ...single, 'get /v1/vhosts/{vhost} 200'].sort());
    expect(document.paths['/v1/vhosts:reloadAllCertificates'].post.responses.default.headers).toHaveProperty('Millrace-Reason');
  });

  test('marks optional request bodies', () => {
    const optional = operations.filter(
      ({ operation }) => (operation as { requestBody?: { required: boolean } }).requestBody?.required === false,
    );
    expect(optional.map(({ path }) => path.replace(/.*:/, ':')).sort()).toEqual([':concludeHlsLive', ':pushes', ':records']);
  });

  test('has an example of every body, and no others', () => {
    const bodies = operations.filter(({ operation }) => 'requestBody' in operation);
    expect(bodies.map(({ method, path }) => `${method.toUpperCase()} ${path}`).sort()).toEqual(Object.keys(REQUEST_EXAMPLES).sort());
    const shown = document.paths['/v1/vhosts'].post.requestBody.content['application/json'].example;
    expect(shown).toEqual([{ name: 'mine', host: { names: ['media.example.com'] } }]);
  });

  test('describes bodies by the schemas that read them', () => {
    const { VirtualHostDefinition, ApplicationDefinition } = document.components.schemas;
    expect(VirtualHostDefinition.required).toEqual(['name', 'host']);
    expect(VirtualHostDefinition.properties.host.properties.names.type).toBe('array');
    expect(ApplicationDefinition.properties.publishers.properties.llhls.properties.segmentDuration.type).toBe('number');
    expect(JSON.stringify(document)).not.toContain('x-config');
  });
});
