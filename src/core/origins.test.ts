import { describe, expect, it } from 'vitest';
import { readVirtualHost } from '../config/index.ts';
import { originPull } from './origins.ts';

function origins(origin: object[], properties: object = {}) {
  const { typed } = readVirtualHost({ name: 'v', host: { names: ['*'] }, origins: { properties, origin } });
  return typed.origins;
}

const WANTED = { vhost: 'v', app: 'app', stream: 's', query: 'x=1' };
const pass = (url: string | string[], more: object = {}) => ({ scheme: 'rtsp', urls: { url: [url].flat() }, ...more });
const urlsOf = (origin: object, wanted: object = {}) => originPull(origins([origin]), { ...WANTED, ...wanted })?.urls;

describe('an origin', () => {
  it.each([
    [
      'replaces the location by its URL',
      { location: '/app/', pass: pass('origin.com:554/another/') },
      ['rtsp://origin.com:554/another/s?x=1'],
    ],
    ['puts its own query first', { location: '/app/s', pass: pass('h/a?key=2') }, ['rtsp://h/a?key=2&x=1']],
    ['keeps the query of the viewer to itself', { location: '/app/', pass: pass('h/', { forwardQueryParams: false }) }, ['rtsp://h/s']],
    [
      'tries its URLs in their order',
      { location: '/', pass: pass(['h/', 'i/', 'j/']) },
      ['rtsp://h/app/s?x=1', 'rtsp://i/app/s?x=1', 'rtsp://j/app/s?x=1'],
    ],
    [
      'of files has a path',
      { location: '/app/', pass: { scheme: 'FILE', urls: { url: ['films/'] }, forwardQueryParams: false } },
      ['file://films/s'],
    ],
    ['without a path cannot be given another host by a name', { location: '/app/', pass: pass('h') }, ['rtsp://h/s?x=1']],
    ['without a path cannot be given another port by a name', { location: '/app/', pass: pass('h:55') }, ['rtsp://h:55/s?x=1']],
    ['goes on inside a path, as its location does inside a name', { location: '/app', pass: pass('h/a_') }, ['rtsp://h/a_/s?x=1']],
    ['with an equal location is strict', { location: '/app/s', strictLocation: true, pass: pass('h/x') }, ['rtsp://h/x?x=1']],
    ['with a longer location does not match', { location: '/app/stream', pass: pass('h/x') }, undefined],
    ['with a prefix does not match strictly', { location: '/app/', strictLocation: true, pass: pass('h/x') }, undefined],
    ['without URLs matches nothing', { location: '/app/', pass: pass([]) }, undefined],
  ])('%s', (_what, origin, expected) => {
    expect(urlsOf(origin)).toEqual(expected);
  });

  it.each([
    ['token=abc&x=1', 'x=1'],
    ['x=1&TOKEN=abc&y=2&token=d', 'x=1&y=2'],
    ['token', ''],
    ['atoken=1&tokens=2&x=token=3', 'atoken=1&tokens=2&x=token=3'],
  ])('does not get the credentials for this server from %s', (query, left) => {
    const [pull] = originPull(origins([{ location: '/app/', pass: pass('h/?a=token') }]), { ...WANTED, query }, ['token'])?.urls ?? [];
    expect(pull).toBe(`rtsp://h/s?a=token${left === '' ? '' : `&${left}`}`);
  });

  it('gets an encoded path, so that names cannot become anything else', () => {
    expect(urlsOf({ location: '/app/', pass: pass('h/') }, { stream: 'a b#c@d', query: '' })).toEqual(['rtsp://h/a%20b%23c%40d']);
  });

  it('is the first match in the list', () => {
    const two = [
      { location: '/app/s', pass: pass('first/') },
      { location: '/app/', pass: pass('second/') },
    ];
    expect(originPull(origins(two), WANTED)?.urls).toEqual(['rtsp://first/?x=1']);
    expect(originPull(origins(two), { ...WANTED, stream: 'other', query: '' })?.urls).toEqual(['rtsp://second/other']);
    expect(originPull(origins(two), { ...WANTED, app: 'elsewhere' })).toBeNull();
    expect(originPull(undefined, WANTED)).toBeNull();
  });

  it('has the settings of the virtual host and its own', () => {
    const properties = { noInputFailoverTimeout: 100, unusedStreamDeletionTimeout: 200, streamFailbackTimeout: 300, retryCount: 0 };
    const own = { location: '/', pass: pass('h/'), persistent: true, failback: true, relay: true, ignoreRtcpSRTimestamp: true };
    expect(originPull(origins([own], properties), WANTED)).toMatchObject({
      name: 's',
      configured: true,
      properties: {
        persistent: true,
        noInputFailoverTimeoutMs: 100,
        unusedStreamDeletionTimeoutMs: 200,
        ignoreRtcpSRTimestamp: true,
        retryCount: 0,
        relay: true,
        failbackMs: 300,
      },
    });
    const plain = originPull(origins([{ location: '/', pass: { scheme: 'ovt', urls: { url: ['h/'] } } }]), WANTED)?.properties;
    expect(plain).toMatchObject({ persistent: false, relay: true, noInputFailoverTimeoutMs: 3000, retryCount: 1 });
    expect(plain).not.toHaveProperty('failbackMs');
  });
});
