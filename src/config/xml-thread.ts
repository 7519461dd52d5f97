/** XML files of a running server. Large ones are parsed in a thread, because parsing takes 0.3 ms for each thousand characters. */
import { entryFile } from '../util/entry-file.ts';
import { inSlices } from '../util/in-slices.ts';
import type { LogLines } from '../util/logger.ts';
import { readWhole } from '../util/read-whole.ts';
import { WorkThread, workOrHere } from '../util/work-thread.ts';
import { parseXml, type XmlElement } from './xml.ts';
import type { XmlLimits } from './xml-limits.ts';

/** Characters. A shorter text is parsed faster than it crosses to a thread and back. */
const LARGE = 32 * 1024;
/** The largest file takes half a second, on a machine that has nothing else to do. */
const DEADLINE_MS = 30_000;
const IDLE_MS = 10_000;
const ENTRY = entryFile('./xml-worker', import.meta.url);
const MAX_BYTES = 2 * 1024 * 1024;

/** A text, as the thread gets it and `parseXml` takes it. */
export interface XmlText {
  readonly text: string;
  readonly file: string;
  readonly limits?: XmlLimits;
}

/** An element without its children and its file. `depth`: elements around it. Elements are in the order of the text. */
export type FlatElement = readonly [
  depth: number,
  name: string,
  line: number,
  text: string,
  attributes: readonly (readonly [name: string, value: string])[],
];

/** Answers with lists of `FlatElement`, each as JSON, which is read faster than objects from another thread, and list by list. */
export type XmlThread = Pick<WorkThread<XmlText, readonly string[]>, 'run'>;

const shared: XmlThread = new WorkThread({ entry: ENTRY, name: 'XML', deadline: DEADLINE_MS, idle: IDLE_MS });

/** Like `parseXml`. Rejects as well for a text that the thread has parsed for half a minute. `thread` is for tests. */
export function readXml(source: XmlText, logger: Pick<LogLines, 'warn'>, thread = shared): XmlElement | Promise<XmlElement> {
  return source.text.length < LARGE ? parsed(source) : readInThread(source, logger, thread);
}

/** `readXml` of the file at the path `file`, of at most `limit` bytes (2 MiB). Rejects with the errors of the file system, too. */
export async function readXmlFile(file: string, logger: Pick<LogLines, 'warn'>, limit = MAX_BYTES): Promise<XmlElement> {
  return await readXml({ text: (await readWhole(file, limit)).toString('utf8'), file }, logger);
}

async function readInThread(source: XmlText, logger: Pick<LogLines, 'warn'>, thread: XmlThread): Promise<XmlElement> {
  const read = await workOrHere(thread, source, { file: source.file, here: () => parsed(source), logger });
  return Array.isArray(read) ? await treeOf(read, source.file) : (read as XmlElement);
}

function parsed({ text, file, limits }: XmlText): XmlElement {
  return parseXml(text, file, limits);
}

async function treeOf(lists: readonly string[], file: string): Promise<XmlElement> {
  const top: XmlElement[] = [];
  /** The children of the element read last, and of those around it. */
  const open: XmlElement[][] = [top];
  function* grow(): Iterable<void> {
    for (const list of lists) {
      for (const [depth, name, line, text, attributes] of JSON.parse(list) as readonly FlatElement[]) {
        const children: XmlElement[] = [];
        open.length = depth + 1;
        open[depth]?.push({ name, attributes: new Map(attributes), children, text, file, line });
        open.push(children);
      }
      yield;
    }
  }
  await inSlices(grow());
  return top[0] as XmlElement;
}
