import { expect, test } from 'vitest';
import { acknowledge } from './envelope.ts';
import { type Method, RouteTable } from './route.ts';

const paths: readonly (readonly [Method, string])[] = [
  ['GET', '/v1/vhosts'],
  ['GET', '/v1/vhosts/{vhost}'],
  ['POST', '/v1/vhosts/{vhost}:reloadCertificate'],
  ['GET', '/v1/vhosts/{vhost}/apps/{app}'],
  ['POST', '/v1/vhosts/{vhost}/apps/{app}:startPush'],
  ['GET', '/v1/vhosts/{vhost}/apps/{app}/streams/{stream}'],
];
const table = new RouteTable(
  paths.map(([method, path]) => ({ method, path, summary: '', level: 'server' as const, handle: () => acknowledge() })),
);

test.each([
  ['GET', '/v1/vhosts', '/v1/vhosts', {}],
  ['GET', '/v1/vhosts/', '/v1/vhosts/{vhost}', { vhost: '' }],
  ['GET', '/v1/vhosts/v:reloadCertificate', '/v1/vhosts/{vhost}', { vhost: 'v:reloadCertificate' }],
  ['POST', '/v1/vhosts/a:b:reloadCertificate', '/v1/vhosts/{vhost}:reloadCertificate', { vhost: 'a:b' }],
  ['GET', '/v1/vhosts/v/apps/', '/v1/vhosts/{vhost}/apps/{app}', { vhost: 'v', app: '' }],
  ['POST', '/v1/vhosts/v/apps/a:startPush', '/v1/vhosts/{vhost}/apps/{app}:startPush', { vhost: 'v', app: 'a' }],
  ['GET', '/v1/vhosts//apps/a/streams/s:x', '/v1/vhosts/{vhost}/apps/{app}/streams/{stream}', { vhost: '', app: 'a', stream: 's:x' }],
])('%s %s is %s', (method, path, pattern, parameters) => {
  const match = table.find(method, path);
  expect(match?.route.path).toBe(pattern);
  expect({ ...match?.parameters }).toEqual(parameters);
});

test.each([
  ['GET', '/v1/vhosts/v/'],
  ['GET', '/V1/vhosts'],
  ['GET', '/v1/vhosts?'],
  ['PUT', '/v1/vhosts'],
  ['POST', '/v1/vhosts/v'],
  ['GET', '/v1/vhosts/v/apps/a:'],
  ['POST', '/v1/vhosts/v/apps/a:nope'],
  ['POST', '/v1/vhosts/v/apps/a:startPush/'],
])('%s %s matches no route', (method, path) => {
  expect(table.find(method, path)).toBeNull();
});
