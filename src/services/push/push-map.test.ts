import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ConfigError } from '../../config/index.ts';
import { parseXml } from '../../config/xml.ts';
import { parsePushMap, pushRequestsFor } from './push-map.ts';

const parsed = (xml: string, file: string) => parsePushMap(parseXml(xml, file));

const entry = (body: string): string => `<?xml version="1.0"?>\n<PushInfo>\n<Push>${body}</Push>\n</PushInfo>`;
const FULL = entry(
  '<Enable>true</Enable><StreamName>${SourceStream}_*</StreamName><VariantNames>a, b</VariantNames><Protocol>RTMP</Protocol>' +
    '<Url>rtmp://${Application}.example/${Stream}/</Url><StreamKey>${SourceStream}-key</StreamKey>',
);
const stream = { app: 'app', name: 'cam_high', sourceName: 'cam' };

test('entries become tasks of the streams they name, with macros replaced', () => {
  expect(pushRequestsFor(parsed(FULL, 'map.xml'), stream, () => 'id')).toEqual([
    {
      ...{ id: 'id', streamName: 'cam_high', trackIds: [], variantNames: ['a', 'b'], protocol: 'rtmp' },
      ...{ url: 'rtmp://app.example/cam_high', streamKey: 'cam-key', isConfig: true },
    },
  ]);
  expect(pushRequestsFor(parsed(FULL, 'map.xml'), { ...stream, name: 'other' }, () => 'id')).toEqual([]);
});

test('disabled entries are skipped, even with invalid contents', () => {
  expect(parsed(entry('<Enable>false</Enable><Protocol>x</Protocol>'), 'map.xml')).toEqual([]);
  expect(parsed(entry(''), 'map.xml')).toEqual([]);
});

test.each([
  ['<PushList/>', /root element must be PushInfo/],
  [entry('<Enable>true</Enable>'), /map\.xml:3: Push\/StreamName is missing/],
  [
    entry('<Enable>true</Enable><StreamName>*</StreamName><Protocol>rtp</Protocol>'),
    /Push\/Protocol must be one of rtmp, srt, mpegts, but is "rtp"/,
  ],
  [entry('<Enable>true</Enable><StreamName>*</StreamName><Protocol>srt</Protocol><Url>rtmp://h/a</Url>'), /Push\/Url is no URL for srt/],
  ['<PushInfo>', /./],
])('%s is refused with the place', (xml, message) => {
  expect(() => parsed(xml, 'map.xml')).toThrow(message);
});

test('any text is read or refused', () => {
  fc.assert(
    fc.property(fc.string(), fc.nat(FULL.length), (text, at) => {
      try {
        parsed(FULL.slice(0, at) + text + FULL.slice(at), 'map.xml');
      } catch (error) {
        expect(error).toBeInstanceOf(ConfigError);
      }
    }),
  );
});
