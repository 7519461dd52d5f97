/** The information file of recordings: XML with one `file` for each file recorded, replaced atomically. */
import { readFile, rename } from 'node:fs/promises';
import { writeFileAtomic } from '../../state/atomic-file.ts';
import { formatTimestamp } from '../../util/timestamp.ts';
import { characterData, escapeXml } from '../../util/xml-text.ts';

/** A file that was recorded. Times are ms since the epoch. */
export interface RecordedFile {
  readonly transactionId: string;
  readonly id: string;
  readonly metadata: string;
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
  readonly filePath: string;
  readonly recordBytes: number;
  /** ms. */
  readonly recordTime: number;
  readonly sequence: number;
  readonly lastSequence: boolean;
  readonly createdTime: number;
  readonly startTime: number;
  readonly finishTime: number;
}

const HEAD = '<?xml version="1.0" encoding="utf-8"?>\n<files>\n';
const TAIL = '</files>\n';
const END = /<\/files>\s*$/;

/** Appends to information files. Several recordings may share one: writes to a path run one after the other. */
export class RecordInfoFiles {
  /** The last addition to each path that is under way. */
  readonly #tails = new Map<string, Promise<void>>();

  /**
   * Resolves when `file` is appended to the information file at `path`; with `once`, only if it is not listed yet. Rejects with the file
   * system's error; the information file is then unchanged.
   */
  append(path: string, file: RecordedFile, once = false): Promise<void> {
    const before = this.#tails.get(path) ?? Promise.resolve();
    const addition = before.catch(() => undefined).then(() => add(path, file, once));
    this.#tails.set(path, addition);
    const forget = (): void => {
      if (this.#tails.get(path) === addition) this.#tails.delete(path);
    };
    addition.then(forget, forget);
    return addition;
  }
}

async function add(path: string, file: RecordedFile, once: boolean): Promise<void> {
  const present = await textOf(path);
  if (once && present !== null && tells(present, file)) return;
  const end = present === null ? null : END.exec(present);
  if (present !== null && end === null) {
    // Not our file, or truncated: it is kept under another name.
    await rename(path, `${path}.broken-${Date.now()}`);
  }
  const files = present === null || end === null ? HEAD : present.slice(0, end.index);
  await writeFileAtomic(path, files + elementOf(file) + TAIL);
}

/** Whether an information file lists the file, with the same recording and number. */
function tells(text: string, { transactionId, filePath, sequence }: RecordedFile): boolean {
  const members = [
    member('transactionId', escapeXml(transactionId)),
    member('filePath', characterData(filePath)),
    member('sequence', sequence),
  ];
  return text.split('<file>').some((element) => members.every((line) => element.includes(line)));
}

function member(name: string, value: string | number): string {
  return `<${name}>${value}</${name}>`;
}

async function textOf(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

function elementOf(file: RecordedFile): string {
  const members: [string, string | number][] = [
    ['transactionId', escapeXml(file.transactionId)],
    ['id', escapeXml(file.id)],
    ['metadata', escapeXml(file.metadata)],
    ['vhost', escapeXml(file.vhost)],
    ['app', escapeXml(file.app)],
    ['stream', escapeXml(file.stream)],
    ['filePath', characterData(file.filePath)],
    ['recordBytes', file.recordBytes],
    ['recordTime', file.recordTime],
    ['sequence', file.sequence],
    ['lastSequence', String(file.lastSequence)],
    ['createdTime', formatTimestamp(file.createdTime)],
    ['startTime', formatTimestamp(file.startTime)],
    ['finishTime', formatTimestamp(file.finishTime)],
  ];
  return `  <file>\n${members.map(([name, value]) => `    ${member(name, value)}\n`).join('')}  </file>\n`;
}
