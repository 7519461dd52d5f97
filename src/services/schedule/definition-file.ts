/** Scheduled channels as `.sch` files. */
import { parseXml, type XmlElement } from '../../config/xml.ts';
import { escapeXml } from '../../util/xml-text.ts';
import { definitionFromJson, itemFrom, programFrom } from './definition-json.ts';
import type { ChannelSettings, ScheduleDefinition, ScheduleItem } from './schedule-definition.ts';
import { inOrder, refuseManyZones, SCHEDULE_FILE_LIMITS, ScheduleProblem, withinLimits } from './schedule-definition.ts';

/** The ending of the files, with its dot. */
export const SCHEDULE_FILE = '.sch';

/** Parses the file of channel `name`; the name inside the file is ignored. Throws an `Error` that names the line. */
export function parseScheduleFile(text: string, name: string, file: string): ScheduleDefinition {
  const root = parseXml(text, file, SCHEDULE_FILE_LIMITS);
  if (root.name !== 'Schedule') throw fault(root, `the root element must be Schedule, but is ${root.name}`);
  const stream = childOf(root, 'Stream');
  const fallback = childOf(root, 'FallbackProgram');
  const programs = childrenOf(root, 'Program');
  // Piece by piece, so that a fault has its line.
  const described = stream ?? root;
  const settings = { ...(stream !== undefined && settingsOf(stream)), name };
  refuseManyZones(programs.map(({ attributes }) => attributes.get('scheduled')));
  const definition = {
    stream: checked(described, () => definitionFromJson({ stream: settings }).stream),
    fallback: fallback === undefined ? [] : itemsOf(fallback),
    programs: inOrder(
      programs.map((program) => {
        const read = checked(program, () => programFrom(attributesOf(program, ['name', 'scheduled'], [], ['repeat']), ''));
        return { ...read, items: itemsOf(program) };
      }),
    ),
  };
  return checked(root, () => withinLimits(definition));
}

/** The file for a channel; `parseScheduleFile` makes the same of it. */
export function formatScheduleFile(definition: ScheduleDefinition): string {
  return [...scheduleFilePieces(definition)].join('');
}

/** The same in pieces. */
export function* scheduleFilePieces({ stream, fallback, programs }: ScheduleDefinition): Iterable<string> {
  yield headOf(stream);
  if (fallback.length > 0) yield '\t<FallbackProgram>\n';
  for (const item of fallback) yield itemLine(item);
  if (fallback.length > 0) yield '\t</FallbackProgram>\n';
  for (const { name, scheduled, repeat, items } of programs) {
    yield `\t<Program${attribute('name', name)}${attribute('scheduled', scheduled)}${attribute('repeat', repeat)}>\n`;
    for (const item of items) yield itemLine(item);
    yield '\t</Program>\n';
  }
  yield '</Schedule>\n';
}

function headOf(stream: ChannelSettings): string {
  const lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<Schedule>', '\t<Stream>'];
  const leaf = (depth: number, name: string, value: string | number | boolean): void => {
    lines.push(`${'\t'.repeat(depth)}<${name}>${escapeXml(String(value))}</${name}>`);
  };
  leaf(2, 'Name', stream.name);
  leaf(2, 'BypassTranscoder', stream.bypassTranscoder);
  leaf(2, 'VideoTrack', stream.videoTrack);
  leaf(2, 'AudioTrack', stream.audioTrack);
  leaf(2, 'ErrorToleranceDurationMs', stream.errorToleranceDurationMs);
  if (stream.audioMap.length > 0) {
    lines.push('\t\t<AudioMap>');
    for (const { name, language, characteristics } of stream.audioMap) {
      lines.push('\t\t\t<Item>');
      leaf(4, 'Name', name);
      leaf(4, 'Language', language);
      leaf(4, 'Characteristics', characteristics);
      lines.push('\t\t\t</Item>');
    }
    lines.push('\t\t</AudioMap>');
  }
  lines.push('\t</Stream>', '');
  return lines.join('\n');
}

function itemLine({ url, start, duration, fallbackOnErr }: ScheduleItem): string {
  const times = attribute('start', start) + attribute('duration', duration);
  return `\t\t<Item${attribute('url', url)}${times}${attribute('fallbackOnErr', fallbackOnErr)} />\n`;
}

function attribute(name: string, value: string | number | boolean): string {
  if (typeof value !== 'string') return ` ${name}="${value}"`;
  // XML readers make blanks of tabs and line ends.
  const text = escapeXml(value).replaceAll(/["\t\n\r]/g, (character) => `&#${character.charCodeAt(0)};`);
  return ` ${name}="${text}"`;
}

function settingsOf(stream: XmlElement): object {
  const audioMap = childOf(stream, 'AudioMap');
  return {
    ...flag('bypassTranscoder', textOf(stream, 'BypassTranscoder')),
    ...flag('videoTrack', textOf(stream, 'VideoTrack')),
    ...flag('audioTrack', textOf(stream, 'AudioTrack')),
    ...number('errorToleranceDurationMs', textOf(stream, 'ErrorToleranceDurationMs')),
    audioMap: (audioMap === undefined ? [] : childrenOf(audioMap, 'Item')).map((item) => ({
      ...{
        name: textOf(item, 'Name') ?? '',
        language: textOf(item, 'Language') ?? '',
        characteristics: textOf(item, 'Characteristics') ?? '',
      },
    })),
  };
}

function itemsOf(owner: XmlElement): ScheduleItem[] {
  return childrenOf(owner, 'Item').map((item) =>
    checked(item, () => itemFrom(attributesOf(item, ['url'], ['start', 'duration'], ['fallbackOnErr']), '')),
  );
}

/** Errors about an element name its line. */
function checked<T>(element: XmlElement, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ScheduleProblem)) throw error;
    throw fault(element, error.message.replace('[stream.', '['));
  }
}

function attributesOf(element: XmlElement, texts: readonly string[], numbers: readonly string[], flags: readonly string[]): object {
  const { attributes } = element;
  const found: Record<string, unknown> = {};
  for (const name of texts) if (attributes.has(name)) found[name] = attributes.get(name);
  for (const name of numbers) Object.assign(found, number(name, attributes.get(name)));
  for (const name of flags) Object.assign(found, flag(name, attributes.get(name)));
  return found;
}

/** Booleans as in `Server.xml`; other texts are left to the checks that know the expected form. */
function flag(name: string, text: string | undefined): object {
  if (text === undefined || text.trim() === '') return {};
  const word = text.trim().toLowerCase();
  if (/^\d+$/.test(word)) return { [name]: Number(word) !== 0 };
  return { [name]: word === 'true' || word === 'false' ? word === 'true' : text };
}

function number(name: string, text: string | undefined): object {
  if (text === undefined || text.trim() === '') return {};
  return { [name]: /^-?\d+$/.test(text.trim()) ? Number(text) : text };
}

function childOf(element: XmlElement, name: string): XmlElement | undefined {
  return childrenOf(element, name)[0];
}

function childrenOf({ children }: XmlElement, name: string): readonly XmlElement[] {
  return children.filter((child) => child.name === name);
}

function textOf(element: XmlElement, name: string): string | undefined {
  return childOf(element, name)?.text;
}

function fault({ line }: XmlElement, message: string): Error {
  return new Error(`line ${line}: ${message}`);
}
