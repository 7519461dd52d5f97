import { expect, test } from 'vitest';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { turnsDuring } from '../../../test/support/turns-during.ts';
import { WorkThreadLost } from '../../util/work-thread.ts';
import { formatScheduleFile, parseScheduleFile } from './definition-file.ts';
import { definitionFromJson } from './definition-json.ts';
import { type ReadingThread, readScheduleFile, type ScheduleFile } from './definition-thread.ts';

const logger = new RecordingLogger();

/** A week of programs of a minute each, with strange names. */
function scheduleOf(programs: number): ScheduleFile {
  const definition = definitionFromJson({
    stream: { name: 'channel', audioMap: [{ name: 'Français & <co>', language: 'fr', characteristics: '' }] },
    fallbackProgram: { items: [{ url: 'file://fallback 100%.mp4' }] },
    programs: Array.from({ length: programs }, (_, n) => ({
      name: `program "${n}"`,
      scheduled: new Date(Date.UTC(2030, 0, 1, 0, n)).toISOString(),
      items: [{ url: `file://a/long/folder/of/episodes/episode-${n}.mp4`, start: n, duration: 60_000, fallbackOnErr: n % 2 === 0 }],
    })),
  });
  return { text: formatScheduleFile(definition), name: 'channel', file: '/schedules/channel.sch' };
}

function withFault(source: ScheduleFile): ScheduleFile {
  const at = source.text.lastIndexOf('file://');
  return { ...source, text: `${source.text.slice(0, at)}http${source.text.slice(at + 4)}` };
}

function refusal(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('it was read');
}

test('a file of a megabyte is read while the event loop turns, and is the same as one read in place', async () => {
  const source = scheduleOf(5000);
  expect(source.text.length).toBeGreaterThan(1_000_000);
  const reading = readScheduleFile(source, logger);
  const { turns, result } = await turnsDuring(() => reading);
  expect(reading).toBeInstanceOf(Promise);
  expect(turns).toBeGreaterThan(10);
  expect(result).toEqual(parseScheduleFile(source.text, source.name, source.file));
});

test.each<[what: string, make: (source: ScheduleFile) => ScheduleFile, part: string]>([
  ['a wrong value', withFault, 'line 918: Failed to parse url attribute, url must be file:// or stream://'],
  ['a text that ends early', (source) => ({ ...source, text: source.text.slice(0, -20) }), 'The XML is not well-formed'],
])('%s of a large file is refused by the thread with the words of one read in place', async (_what, make, part) => {
  const source = make(scheduleOf(300));
  const told = refusal(() => parseScheduleFile(source.text, source.name, source.file));
  await expect(readScheduleFile(source, logger)).rejects.toThrow(told);
  expect(told).toContain(part);
});

test('a small file is read in place', () => {
  const source = scheduleOf(10);
  const thread: ReadingThread = {
    run: () => {
      throw new Error('it went to the thread');
    },
  };
  expect(readScheduleFile(source, logger, thread)).toEqual(parseScheduleFile(source.text, source.name, source.file));
  expect(refusal(() => readScheduleFile(withFault(source), logger, thread))).toContain('Failed to parse url attribute');
});

test('a large file is read in place when its thread is lost, and refused when it takes too long', async () => {
  const source = scheduleOf(300);
  const failing = (error: Error): ReadingThread => ({ run: () => Promise.reject(error) });
  const read = await readScheduleFile(source, logger, failing(new WorkThreadLost("the thread 'schedules' ended: exit code 1")));
  expect(read.programs).toHaveLength(300);
  expect(logger.lines.at(-1)).toMatchObject({ level: 'warn', message: expect.stringContaining('exit code 1') });
  await expect(readScheduleFile(source, logger, failing(new Error('it took longer than 30 s')))).rejects.toThrow('longer than 30 s');
});
