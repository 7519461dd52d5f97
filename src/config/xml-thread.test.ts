import { expect, test } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { turnsDuring } from '../../test/support/turns-during.ts';
import { WorkThreadLost } from '../util/work-thread.ts';
import { parseXml } from './xml.ts';
import { readXml, readXmlFile, type XmlText, type XmlThread } from './xml-thread.ts';

const logger = new RecordingLogger();

/** Elements of three levels, with texts and attributes that have to be escaped. */
function xmlOf(items: number): XmlText {
  const item = (n: number) => `<Item id="${n}" note="a &quot;b&quot; &amp; 'c'"><Name>é &lt;${n}&gt;</Name><Deep><Deeper/></Deep></Item>`;
  const text = `<?xml version="1.0"?>\n<Root>\n${Array.from({ length: items }, (_, n) => item(n)).join('\n')}\n<!-- end --><Last>x</Last></Root>`;
  return { text, file: 'large.xml' };
}

const never: XmlThread = {
  run: () => {
    throw new Error('it went to the thread');
  },
};

test('a text of a megabyte is parsed while the event loop turns, and is the same as one parsed in place', async () => {
  const source = xmlOf(10_000);
  expect(source.text.length).toBeGreaterThan(1_000_000);
  const { turns, result } = await turnsDuring(() => readXml(source, logger));
  expect(turns).toBeGreaterThan(10);
  expect(result).toEqual(parseXml(source.text, source.file));
});

test.each<[what: string, source: XmlText, part: string]>([
  ['a text that ends early', { ...xmlOf(1000), text: xmlOf(1000).text.slice(0, -20) }, 'The XML is not well-formed'],
  ['an unknown entity', { ...xmlOf(1000), text: xmlOf(1000).text.replace('<Last>x', '<Last>&y;') }, 'Unknown entity'],
  ['a text beyond its limits', { ...xmlOf(1000), limits: { tags: 100, attributes: 100 } }, 'The XML has more than 100 tags'],
])('%s is refused by the thread with the words of one parsed in place', async (_what, source, part) => {
  expect(source.text.length).toBeGreaterThan(32 * 1024);
  await expect(readXml(source, logger)).rejects.toThrow(part);
  expect(() => parseXml(source.text, source.file, source.limits)).toThrow(part);
});

test('a small text is parsed in place', () => {
  const source = xmlOf(10);
  expect(readXml(source, logger, never)).toEqual(parseXml(source.text, source.file));
});

test('a large text is parsed in place when the thread is lost', async () => {
  const source = xmlOf(1000);
  const lost: XmlThread = { run: () => Promise.reject(new WorkThreadLost("the thread 'XML' ended: exit code 1")) };
  expect(await readXml(source, logger, lost)).toEqual(parseXml(source.text, source.file));
  expect(logger.lines.at(-1)).toMatchObject({ level: 'warn', message: expect.stringContaining('exit code 1') });
});

test('what is no file is refused', async () => {
  await expect(readXmlFile('/dev/zero', logger)).rejects.toThrow('/dev/zero is not a file');
  await expect(readXmlFile('/nowhere/map.xml', logger)).rejects.toThrow('ENOENT');
});
