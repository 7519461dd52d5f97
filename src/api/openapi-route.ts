import { Type } from '../util/typebox.ts';
import { writeJson } from './json/json-writer.ts';
import { openApiDocument } from './openapi.ts';
import type { Route } from './route.ts';

/** Describes `routes`, including this one, as OpenAPI for clients and their generators; made on the first request. */
export function openApiRoute(routes: () => readonly Route[]): Route {
  let text: string | null = null;
  return {
    method: 'GET',
    path: '/openapi.json',
    level: 'server',
    summary: 'This API as an OpenAPI 3.1 document, without an envelope',
    plain: { 200: Type.Object({}) },
    handle: ({ server }) => {
      text ??= writeJson(openApiDocument(routes(), server.version));
      return { status: 200, body: text };
    },
  };
}
