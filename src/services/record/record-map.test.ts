import { expect, test } from 'vitest';
import { parseXml } from '../../config/xml.ts';
import { parseRecordMap, requestsFor } from './record-map.ts';

const parsed = (xml: string, file: string) => parseRecordMap(parseXml(xml, file));

const STREAM = { name: 'cam_high', sourceName: 'cam' };
const NAME = '<Enable>true</Enable><StreamName>${SourceStream}_*</StreamName>';

function map(more: string): string {
  return `<RecordInfo>\n<Record>${NAME}${more}</Record>\n</RecordInfo>`;
}

test('an entry supports all members of a request', () => {
  const paths = '<FilePath>/${Stream}.mp4</FilePath><InfoPath>/i.xml</InfoPath>';
  const rest = '<SegmentSchedule>0 */10 *</SegmentSchedule><SegmentRule>continuity</SegmentRule><Metadata>m</Metadata>';
  const entries = parsed(map(`<VariantNames>a, b</VariantNames>${paths}${rest}`), 'map.xml');
  expect(requestsFor(entries, STREAM)).toEqual([
    {
      ...{ id: expect.stringMatching(/^\w{16}$/), streamName: 'cam_high', trackIds: [], variantNames: ['a', 'b'], isConfig: true },
      ...{ interval: 0, schedule: '0 */10 *', segmentationRule: 'continuity', metadata: 'm' },
      ...{ filePath: '/${Stream}.mp4', infoPath: '/i.xml' },
    },
  ]);
  expect(requestsFor(entries, { ...STREAM, sourceName: 'other' })).toEqual([]);
  expect(requestsFor(parsed(map('<SegmentInterval>1500</SegmentInterval>'), 'map.xml'), STREAM)).toMatchObject([{ interval: 1500 }]);
});

test.each([
  ['<SegmentInterval>-1</SegmentInterval>', 'map.xml:2: Record/SegmentInterval must be'],
  ['<SegmentInterval>5</SegmentInterval><SegmentSchedule>* * *</SegmentSchedule>', 'exclude each other'],
  ['<SegmentSchedule>* *</SegmentSchedule>', 'Record/SegmentSchedule must be'],
])('%s is refused with the place', (more, message) => {
  expect(() => parsed(map(more), 'map.xml')).toThrow(message);
});
