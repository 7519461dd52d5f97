import { inSlices } from '../util/in-slices.ts';
import { Type } from '../util/typebox.ts';
import { jsonInSlices } from './long-answers.ts';
import { documentSteps } from './openapi.ts';
import type { Route } from './route.ts';

/** Describes `routes`, including this one, as OpenAPI for clients and their generators; made on the first request. */
export function openApiRoute(routes: () => readonly Route[]): Route {
  let text: Promise<string> | null = null;
  return {
    method: 'GET',
    path: '/openapi.json',
    level: 'server',
    summary: 'This API as an OpenAPI 3.1 document, without an envelope',
    plain: { 200: Type.Object({}) },
    handle: async ({ server }) => {
      text ??= textOf(routes(), server.version);
      return { status: 200, body: await text };
    },
  };
}

async function textOf(routes: readonly Route[], version: string): Promise<string> {
  let document: object = {};
  function* make(): Iterable<void> {
    document = yield* documentSteps(routes, version);
  }
  await inSlices(make());
  return await jsonInSlices(document);
}
