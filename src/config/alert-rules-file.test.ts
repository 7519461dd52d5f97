import { expect, test } from 'vitest';
import { parseAlertRules } from './alert-rules-file.ts';
import { parseXml } from './xml.ts';

const parsed = (xml: string, file: string) => parseAlertRules(parseXml(xml, file));

test('the rules of a file equal those of the section', () => {
  const xml = '<?xml version="1.0"?><Rules><Ingress><MinBitrate>2M</MinBitrate><HasBFrames/></Ingress><InternalQueueCongestion/></Rules>';
  expect(parsed(xml, 'r.xml')).toMatchObject({
    ingress: { minBitrate: 2 * 1024 * 1024, hasBFrames: {} },
    internalQueueCongestion: {},
  });
});

test.each([
  ['<Alert><Rules/></Alert>', 'The root element must be <Rules>, but is <Alert>'],
  ['<Rules><Ingress><MinBitrate>much</MinBitrate></Ingress></Rules>', 'MinBitrate'],
  ['<Rules><Ingres/></Rules>', 'Ingres'],
  ['<Rules>', 'Unclosed'],
])('%s is refused by name', (xml, part) => {
  expect(() => parsed(xml, 'r.xml')).toThrow(part);
});
