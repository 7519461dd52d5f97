import { expect, it } from 'vitest';
import { redisNode, redisPlace } from './redis-url.ts';

const at = (host: string, port: number) => ({ host, port });

it.each([
  ['redis://r', { kind: 'server', tls: false, nodes: [at('r', 6379)], master: '', database: 0 }],
  ['rediss://10.0.0.1:6380/7', { kind: 'server', tls: true, nodes: [at('10.0.0.1', 6380)], master: '', database: 7 }],
  ['REDIS://[::1]:1/', { kind: 'server', tls: false, nodes: [at('::1', 1)], master: '', database: 0 }],
  ['redis+sentinel://a,b:7/m', { kind: 'sentinel', tls: false, nodes: [at('a', 26_379), at('b', 7)], master: 'm', database: 0 }],
  ['rediss+sentinel://a/m/2', { kind: 'sentinel', tls: true, nodes: [at('a', 26_379)], master: 'm', database: 2 }],
  ['redis+cluster://a:1,b:2,c:3', { kind: 'cluster', tls: false, nodes: [at('a', 1), at('b', 2), at('c', 3)], master: '', database: 0 }],
])('reads %s', (url, place) => {
  expect(redisPlace(url)).toEqual(place);
});

it.each([
  ['', 'must be a URL of the form'],
  ['http://r', 'must be a URL of the form'],
  ['redis://', 'must be a URL of the form'],
  ['redis://r?db=1', 'must be a URL of the form'],
  ['redis+proxy://r', 'must be a URL of the form'],
  ['redis://user:secret@r', 'must not have a user or password in it'],
  ['redis://a,b', 'names several servers'],
  ['redis://a:0', "must name servers as host:port, but has 'a:0'"],
  ['redis://a:65536', "has 'a:65536'"],
  ['redis+cluster://a,,b', "has ''"],
  ['redis://a/x', "must end with the number of a database, but ends with 'x'"],
  ['redis://a/1/2', "ends with '1/2'"],
  ['redis+sentinel://a', 'must end with the name of the master'],
  ['redis+cluster://a/1', 'a cluster has only the first'],
  [`redis+cluster://${'a,'.repeat(64)}a`, 'at most 64 servers'],
])('refuses %s', (url, reason) => {
  expect(() => redisPlace(url)).toThrow(reason);
});

it.each(['h', 'h:0', 'h:65536', 'a:b:1', '[::1]', ':1'])('refuses %s as a server', (text) => {
  expect(redisNode(text)).toBeNull();
});
