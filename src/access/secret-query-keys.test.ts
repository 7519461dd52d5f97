import { expect, test } from 'vitest';
import { type ApplicationConfig, readVirtualHost, type VirtualHostConfig } from '../config/index.ts';
import type { VirtualHost } from '../core/virtual-host.ts';
import { secretQueryKeys } from './secret-query-keys.ts';

const KEYS = [{ name: 'one', hash: 'sha256:c2FsdA:x' }];
const APPS: Readonly<Record<string, Partial<ApplicationConfig>>> = {
  open: {},
  published: { publishKeys: KEYS },
  played: { playTokens: [] },
  both: { publishKeys: KEYS, playTokens: KEYS },
};

function host(config: Partial<VirtualHostConfig>, template: Partial<ApplicationConfig> | null = null): VirtualHost {
  const applications = new Map(Object.entries(APPS).map(([name, keys]) => [name, { definition: { config: keys } }]));
  return { definition: { config }, applications, template: template === null ? null : { config: template } } as unknown as VirtualHost;
}

test.each([
  ['open', []],
  ['published', ['key']],
  ['played', ['token']],
  ['both', ['key', 'token']],
  ['nobody', []],
])('the application %s asks for %j', (app, keys) => {
  expect(secretQueryKeys(host({}), app)).toEqual(keys);
});

test('an undeclared application requires the keys of its template', () => {
  expect(secretQueryKeys(host({}, APPS['played']), 'made')).toEqual(['token']);
  expect(secretQueryKeys(undefined, 'made')).toEqual([]);
});

test('a signed policy has its own names, in any case', () => {
  const signedPolicy = {
    ...{ policyQueryKeyName: 'Pol', signatureQueryKeyName: 'Sig', secretKey: 's' },
    enables: { providers: 'rtmp', publishers: '' },
  };
  const { typed } = readVirtualHost({ name: 'v', host: { names: ['*'] }, signedPolicy });
  expect(secretQueryKeys(host(typed), 'played')).toEqual(['token', 'pol', 'sig']);
});
