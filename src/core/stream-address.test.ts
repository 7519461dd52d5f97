import { expect, test } from 'vitest';
import { addressOf, applicationKey, streamKey, streamOfUrl, streamText } from './stream-address.ts';

test('every stream has a distinct key for arbitrary names', () => {
  const names = ['', 'a', 'a/b', 'b', '/', '"', '","', '\n'];
  const addresses = names.flatMap((vhost) => names.flatMap((app) => names.map((stream) => ({ vhost, app, stream }))));
  expect(new Set(addresses.map(streamKey)).size).toBe(names.length ** 3);
  expect(new Set(addresses.map(applicationKey)).size).toBe(names.length ** 2);
});

test('an object with a name in an application has the address of that name', () => {
  const address = addressOf({ vhost: 'v', app: 'a', name: 's' });
  expect(address).toEqual({ vhost: 'v', app: 'a', stream: 's' });
  expect(streamText(address)).toBe('v/a/s');
});

test('a stream:// URL names a stream, with each part percent-decoded if possible', () => {
  const named = (url: string): string | null => {
    const address = streamOfUrl(url);
    return address && JSON.stringify(Object.values(address));
  };
  expect(named('stream://v/a/s')).toBe('["v","a","s"]');
  expect(named('STREAM://v/a%2Bb/%c3%bc')).toBe('["v","a+b","ü"]');
  expect(named('stream://v/a/100%')).toBe('["v","a","100%"]');
  for (const url of [
    'stream://v/a',
    'stream://v/a/s/t',
    'stream://v//s',
    'stream://v/a/s%2Ft',
    'stream://v/a/s?x',
    'file://v/a/s',
    'v/a/s',
    '',
  ])
    expect(named(url)).toBeNull();
});
