import { describe, expect, test } from 'vitest';
import { completeUrl, decodePath, hostName, queryValue, splitTarget } from './request-target.ts';

describe('request targets', () => {
  test.each([
    ['/a/b/c', { path: '/a/b/c', query: '', authority: undefined }],
    ['/a?x=1&y=2', { path: '/a', query: 'x=1&y=2', authority: undefined }],
    ['/a?x=1?y=2', { path: '/a', query: 'x=1', authority: undefined }],
    ['/a#f?x', { path: '/a', query: '', authority: undefined }],
    ['//a/b', { path: '//a/b', query: '', authority: undefined }],
    ['http://h:3333/a/b?c', { path: '/a/b', query: 'c', authority: 'h:3333' }],
    ['HTTPS://h', { path: '/', query: '', authority: 'h' }],
    ['https://h?x', { path: '/', query: 'x', authority: 'h' }],
  ])('%s', (target, expected) => {
    expect(splitTarget(target)).toEqual(expected);
  });

  test.each(['*', 'h:443', 'ftp://h/', 'http:///x', 'http://u@h/', 'x'])('%s is refused', (target) => {
    expect(() => splitTarget(target)).toThrow('neither a path nor an http URL');
  });

  test('escapes are decoded once', () => {
    expect(decodePath('/a%2520b/%EB%B0%A9')).toBe('/a%20b/방');
    expect(() => decodePath('/%zz')).toThrow('percent escape');
    expect(() => decodePath('/%ff')).toThrow('percent escape');
    expect(() => decodePath('/a%00')).toThrow('NUL');
  });

  test.each([
    ['a=1&b=2', 'b', '2'],
    ['a=1&b=2', 'c', undefined],
    ['ab=1&b=2', 'b', '2'],
    ['ba=1', 'b', undefined],
    ['b&a=1', 'b', ''],
    ['b=', 'b', ''],
    ['b=1&b=2', 'b', '1'],
    ['b=a%20b+c', 'b', 'a b+c'],
    ['b=%zz', 'b', '%zz'],
    ['', 'b', undefined],
  ])('query %j, key %s', (query, key, expected) => {
    expect(queryValue(query, key)).toBe(expected);
  });

  test.each([
    ['a.example', 'a.example'],
    ['a.example:3333', 'a.example'],
    ['[::1]:3333', '::1'],
    ['[::1]', '::1'],
    ['', ''],
  ])('host %j', (host, expected) => {
    expect(hostName(host)).toBe(expected);
  });

  test.each([
    ['a.example', '/p?q=1', 'http://a.example:3333/p?q=1'],
    ['a.example:80', '/p', 'http://a.example:80/p'],
    ['a.example:', '/p', 'http://a.example::3333/p'],
    ['192.0.2.1:1', '/p', 'http://192.0.2.1:1/p'],
    ['[2001:db8::1]', '/p', 'http://[2001:db8::1]:3333/p'],
    ['[2001:db8::1]:80', '/p', 'http://[2001:db8::1]:80/p'],
    ['[2001:db8::1]:', '/p', 'http://[2001:db8::1]::3333/p'],
    ['', '/p', 'http://:3333/p'],
    ['a.example', 'http://b.example:9/p?q?r', 'http://b.example:9/p?q'],
    ['a.example', 'http://b.example', 'http://b.example:3333/'],
  ])('for the host %j and the target %s the complete URL is %s', (host, target, url) => {
    expect(completeUrl('http', splitTarget(target), { host, port: 3333 })).toBe(url);
  });

  test.each(['a/b', 'a?b', 'a b', 'a:80:90', 'a:123456', '[::1', '::1', 'a@b'])('have no complete URL for the host %j', (host) => {
    expect(() => completeUrl('http', splitTarget('/p'), { host, port: 3333 })).toThrow('not one host name');
  });
});
