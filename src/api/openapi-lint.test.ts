/** The OpenAPI document in the judgement of Redocly's linter with its recommended rules. */
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { expect, test } from 'vitest';
import { openApiDocument } from './openapi.ts';
import { routes } from './routes.ts';

async function problemsOf(document: object) {
  const config = await createConfig({ extends: ['recommended'] });
  const problems = await lintFromString({ source: JSON.stringify(document), absoluteRef: 'openapi.json', config });
  return problems.map(({ severity, ruleId, message, location }) => `${severity} ${ruleId}: ${message} ${location[0]?.pointer ?? ''}`);
}

/** `/health` has no token and no names that could be wrong. */
const HEALTH = expect.stringMatching(/^warn operation-4xx-response: .* #\/paths\/~1health\/get\/responses$/);

test('the linter finds no error, and one warning about an operation that has no invalid requests', async () => {
  expect(await problemsOf(openApiDocument(routes, '1.2.3'))).toEqual([HEALTH]);
});

test('it would find some', async () => {
  const { servers: _, ...document } = openApiDocument(routes, '1.2.3');
  expect(await problemsOf(document)).toEqual([expect.stringContaining('error no-empty-servers'), HEALTH]);
});
