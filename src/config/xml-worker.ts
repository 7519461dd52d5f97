/** The thread that parses large XML files: see `xml-thread.ts`. */
import { answerWork } from '../util/work-answer.ts';
import { parseXml, type XmlElement } from './xml.ts';
import type { FlatElement, XmlText } from './xml-thread.ts';

/** Elements of one list: they are read in less than a millisecond. */
const AT_ONCE = 500;

answerWork(({ text, file, limits }: XmlText): string[] => {
  const elements: FlatElement[] = [];
  flatten(parseXml(text, file, limits), 0, elements);
  const lists: string[] = [];
  for (let at = 0; at < elements.length; at += AT_ONCE) lists.push(JSON.stringify(elements.slice(at, at + AT_ONCE)));
  return lists;
});

function flatten({ name, line, text, attributes, children }: XmlElement, depth: number, to: FlatElement[]): void {
  to.push([depth, name, line, text, [...attributes]]);
  for (const child of children) flatten(child, depth + 1, to);
}
