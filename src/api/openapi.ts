/** The API as an OpenAPI 3.1 document, generated from the routes and their schemas. */
import type { TSchema } from '@sinclair/typebox';
import { AccessKeySchema, ApplicationSchema, type JsonSchema, jsonSchemaOf, OutputProfileSchema } from '../config/index.ts';
import * as channels from './channel-schemas.ts';
import { INEFFECTIVE_HEADER, REASON_HEADER, reasonPhrase } from './envelope.ts';
import { HealthSchema } from './health-route.ts';
import { REQUEST_EXAMPLES } from './openapi-examples.ts';
import { TAGS } from './openapi-tags.ts';
import { OPERATION_NAMES } from './operation-names.ts';
import type { Route } from './route.ts';
import * as answers from './schemas.ts';
import { LiveEventSchema } from './v1/live-events.ts';
import { LogEventSchema } from './v2/logs.ts';

const STATUS_CODE = { type: 'integer', description: 'Same as the HTTP status' };
const MESSAGE = { type: 'string', description: 'The status in words' };
const ERROR = '#/components/schemas/Error';
const SECURITY_SCHEMES = {
  accessToken: {
    type: 'http',
    scheme: 'basic',
    description: 'Base64 of the access token alone, or of user and password with the token as one of them',
  },
  bearerToken: { type: 'http', scheme: 'bearer', description: 'The access token, not encoded' },
};
/** Responses that every operation with a token may give. */
const UNAUTHORIZED = '#/components/responses/Unauthorized';
const JSON_TYPE = 'application/json';

/** Names of the schemas of bodies and answers; a schema without a name is written where it is used. */
const NAMES: ReadonlyMap<TSchema, string> = new Map([
  [ApplicationSchema, 'ApplicationDefinition'],
  [OutputProfileSchema, 'OutputProfileDefinition'],
  [AccessKeySchema, 'AccessKeyRequest'],
  [HealthSchema, 'Health'],
  [LiveEventSchema, 'LiveEvent'],
  [LogEventSchema, 'LogEvent'],
  ...Object.entries({ ...answers, ...channels }).map(([name, schema]) => [schema as TSchema, name.replace(/Schema$/, '')] as const),
  [answers.VirtualHostAnswer, 'VirtualHost'],
  [answers.ApplicationAnswer, 'Application'],
]);

/** Schemas whose answers list settings without effect. */
const DEFINITIONS: ReadonlySet<TSchema | undefined> = new Set([
  answers.VirtualHostAnswer,
  answers.ApplicationAnswer,
  answers.OutputProfile,
]);
const INEFFECTIVE = {
  [INEFFECTIVE_HEADER]: {
    description: 'Keys of settings without effect in the definition, or in all definitions of a batch, separated by commas; absent: none',
    schema: { type: 'string' },
  },
};
const REASON = { [REASON_HEADER]: { description: 'Reason, if the message does not have it', schema: { type: 'string' } } };

/** The document for `routes`; `version` is that of the product. The result is plain data. */
export function openApiDocument(routes: readonly Route[], version: string): JsonSchema {
  const steps = documentSteps(routes, version);
  for (let step = steps.next(); ; step = steps.next()) if (step.done === true) return step.value;
}

/** The same in steps, of which the last one has the result. */
export function* documentSteps(routes: readonly Route[], version: string): Generator<void, JsonSchema> {
  const used = new Map<TSchema, string>();
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(route, used) };
    yield;
  }
  const schemas: (readonly [string, JsonSchema])[] = [];
  for (const [schema, name] of used) {
    schemas.push([name, jsonSchemaOf(schema)]);
    yield;
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Millrace management API', version, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: '/', description: 'The server that has sent this document' }],
    security: Object.keys(SECURITY_SCHEMES).map((scheme) => ({ [scheme]: [] })),
    tags: TAGS.map(({ name, description }) => ({ name, description })),
    paths,
    components: {
      securitySchemes: SECURITY_SCHEMES,
      responses: { Unauthorized: { description: 'The access token is missing or wrong', content: content({ $ref: ERROR }) } },
      schemas: { ...Object.fromEntries(schemas), Error: objectOf({ message: MESSAGE, statusCode: STATUS_CODE }) },
    },
  };
}

function operation(route: Route, used: Map<TSchema, string>): object {
  const schema = { type: 'string' };
  const parameters = [
    ...[...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({ name, in: 'path', required: true, schema })),
    ...Object.entries(route.query ?? {}).map(([name, description]) => ({ name, in: 'query', required: false, description, schema })),
  ];
  return {
    operationId: nameOf(route),
    summary: route.summary,
    tags: [TAGS.find(({ path }) => path.test(route.path))?.name],
    ...(route.open === true && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(route.body !== undefined && {
      requestBody: { required: route.bodyOptional !== true, content: { [JSON_TYPE]: requestOf(route, route.body, used) } },
    }),
    responses: responses(route, used),
  };
}

function requestOf({ method, path }: Route, body: TSchema, used: Map<TSchema, string>): object {
  const example = REQUEST_EXAMPLES[`${method} ${path}`];
  return { schema: reference(body, used), ...(example !== undefined && { example }) };
}

function responses(route: Route, used: Map<TSchema, string>): object {
  // A request without token and names cannot be invalid.
  if (route.open === true) return plain(route, used);
  const error = { $ref: ERROR };
  // A batch whose items all fail is answered item by item, too.
  const failed = route.batch === true ? { anyOf: [error, { type: 'array', items: error }] } : error;
  return {
    ...(route.plain === undefined ? successes(route, used) : plain(route, used)),
    401: { $ref: UNAUTHORIZED },
    default: { description: 'Description of the error', headers: REASON, content: content(failed) },
  };
}

function plain(route: Route, used: Map<TSchema, string>): object {
  const answers = Object.entries(route.plain ?? {}).map(([status, schema]) => [
    status,
    { description: reasonPhrase(Number(status)), content: content(reference(schema, used), route.type) },
  ]);
  return Object.fromEntries(answers);
}

function successes(route: Route, used: Map<TSchema, string>): object {
  const { success = 200 } = route;
  if (success === null) return {};
  if (route.events !== undefined) {
    const description = 'Server-sent events, each with an `id`, the type as `event`, and `data` of this form';
    return { 200: { description, content: { 'text/event-stream': { schema: reference(route.events, used) } } } };
  }
  const envelope = objectOf({
    message: MESSAGE,
    statusCode: STATUS_CODE,
    ...(route.response !== undefined && { response: reference(route.response, used) }),
  });
  const headers = DEFINITIONS.has(route.response) ? { headers: INEFFECTIVE } : {};
  if (route.batch !== true) return { [success]: { description: reasonPhrase(success), ...headers, content: content(envelope) } };
  const items = { anyOf: [envelope, { $ref: ERROR }] };
  const mixed = { description: 'Some of the items failed', ...headers, content: content({ type: 'array', items }) };
  const whole = { description: reasonPhrase(success), ...headers, content: content({ type: 'array', items: envelope }) };
  return { [success]: whole, 207: mixed };
}

/** A named schema by its name, an array of a named schema by that of its items, any other in full. */
function reference(schema: TSchema, used: Map<TSchema, string>): JsonSchema {
  const name = NAMES.get(schema);
  if (name !== undefined) {
    used.set(schema, name);
    return { $ref: `#/components/schemas/${name}` };
  }
  const items: unknown = schema['items'];
  if (schema['type'] === 'array' && NAMES.has(items as TSchema)) return { type: 'array', items: reference(items as TSchema, used) };
  return jsonSchemaOf(schema);
}

function objectOf(properties: Readonly<Record<string, unknown>>): JsonSchema {
  return { type: 'object', properties, required: Object.keys(properties) };
}

function content(schema: unknown, types: string | readonly string[] = JSON_TYPE): object {
  return Object.fromEntries([types].flat().map((type) => [type, { schema }]));
}

function nameOf({ method, path }: Route): string {
  const name = OPERATION_NAMES[`${method} ${path}`];
  if (name === undefined) throw new Error(`${method} ${path} has no name in operation-names.ts`);
  return name;
}
