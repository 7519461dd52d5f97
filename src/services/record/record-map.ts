/** The map file that starts recordings by the names of streams. */
import type { XmlElement } from '../../config/xml.ts';
import { entriesFor, type MapElement, readStreamMap, type StreamMapEntry } from '../../core/tasks/stream-map.ts';
import { randomName } from './record-path.ts';
import { type RecordRequest, segmentationRuleOf } from './record-request.ts';
import { DailySchedule } from './split-schedule.ts';

const ID_LENGTH = 16;

/** An entry of the map. */
export interface RecordMapEntry extends StreamMapEntry {
  readonly request: Omit<RecordRequest, 'id' | 'streamName'>;
}

/** The entries that are enabled. Throws `ConfigError` with the line at fault. */
export function parseRecordMap(root: XmlElement): RecordMapEntry[] {
  return readStreamMap(root, { root: 'RecordInfo', item: 'Record' }, entryOf);
}

/** Requests, with ids of their own, for an outbound stream of this name. */
export function requestsFor(
  entries: readonly RecordMapEntry[],
  stream: { readonly name: string; readonly sourceName: string },
): RecordRequest[] {
  return entriesFor(entries, stream).map(({ request }) => ({ ...request, id: randomName(ID_LENGTH), streamName: stream.name }));
}

function entryOf(record: MapElement): RecordMapEntry {
  const { streamName, variantNames } = record;
  const schedule = record.text('SegmentSchedule');
  const intervalText = record.text('SegmentInterval');
  const interval = intervalText === '' ? 0 : Number(intervalText);
  if (!Number.isSafeInteger(interval) || interval < 0) {
    throw record.fault('SegmentInterval', `must be a whole number of milliseconds, but is ${JSON.stringify(intervalText)}`);
  }
  if (schedule !== '' && interval > 0) throw record.fault('SegmentInterval', 'and Record/SegmentSchedule exclude each other');
  if (schedule !== '' && DailySchedule.parse(schedule) === null) {
    throw record.fault('SegmentSchedule', `must be "<second> <minute> <hour>", but is ${JSON.stringify(schedule)}`);
  }
  return {
    streamName,
    request: {
      ...{ trackIds: [], variantNames, interval, schedule, isConfig: true },
      segmentationRule: segmentationRuleOf(record.text('SegmentRule')),
      ...{ filePath: record.text('FilePath'), infoPath: record.text('InfoPath'), metadata: record.text('Metadata') },
    },
  };
}
