/** The map file that starts recordings by the names of streams. */
import { ConfigError } from '../../config/index.ts';
import { parseXml, type XmlElement } from '../../config/xml.ts';
import { compileWildcard } from '../../util/wildcard.ts';
import { randomName } from './record-path.ts';
import { type RecordRequest, segmentationRuleOf } from './record-request.ts';
import { DailySchedule } from './split-schedule.ts';

const ID_LENGTH = 16;

/** An entry of the map. */
export interface RecordMapEntry {
  /** Takes `*` and `?`; the macro for the name of the inbound stream is replaced first. */
  readonly streamName: string;
  readonly request: Omit<RecordRequest, 'id' | 'streamName'>;
}

/** The entries that are enabled. Throws `ConfigError` with the line at fault. */
export function parseRecordMap(xml: string, file: string): RecordMapEntry[] {
  const root = parseXml(xml, file);
  if (root.name !== 'RecordInfo') throw fault(root, `the root element must be RecordInfo, but is ${root.name}`);
  return root.children.filter(({ name }) => name === 'Record').flatMap(entryOf);
}

/** Requests, with ids of their own, for an outbound stream of this name. */
export function requestsFor(
  entries: readonly RecordMapEntry[],
  stream: { readonly name: string; readonly sourceName: string },
): RecordRequest[] {
  return entries
    .filter(({ streamName }) => compileWildcard(streamName.replaceAll('${SourceStream}', stream.sourceName))(stream.name))
    .map(({ request }) => ({ ...request, id: randomName(ID_LENGTH), streamName: stream.name }));
}

function entryOf(record: XmlElement): RecordMapEntry[] {
  const textOf = (name: string): string => record.children.find((child) => child.name === name)?.text ?? '';
  if (textOf('Enable').toLowerCase() !== 'true') return [];
  const streamName = textOf('StreamName');
  if (streamName === '') throw fault(record, 'Record/StreamName is missing');
  const schedule = textOf('SegmentSchedule');
  const intervalText = textOf('SegmentInterval');
  const interval = intervalText === '' ? 0 : Number(intervalText);
  if (!Number.isSafeInteger(interval) || interval < 0) {
    throw fault(record, `Record/SegmentInterval must be a whole number of milliseconds, but is ${JSON.stringify(intervalText)}`);
  }
  if (schedule !== '' && interval > 0) throw fault(record, 'Record/SegmentInterval and Record/SegmentSchedule exclude each other');
  if (schedule !== '' && DailySchedule.parse(schedule) === null) {
    throw fault(record, `Record/SegmentSchedule must be "<second> <minute> <hour>", but is ${JSON.stringify(schedule)}`);
  }
  const variantNames = textOf('VariantNames')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  return [
    {
      streamName,
      request: {
        ...{ trackIds: [], variantNames, interval, schedule, isConfig: true, segmentationRule: segmentationRuleOf(textOf('SegmentRule')) },
        ...{ filePath: textOf('FilePath'), infoPath: textOf('InfoPath'), metadata: textOf('Metadata') },
      },
    },
  ];
}

function fault({ file, line, name }: XmlElement, message: string): ConfigError {
  return new ConfigError(`${file}:${line}: ${message}`, { path: name, file, line });
}
