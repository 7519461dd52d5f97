/** All XML and JSON in README and the pages is valid for its reader, without warnings. */
import { expect, test } from 'vitest';
import { ConfigErrors, formatConfigProblem, parseServerConfig, readOutputProfiles } from '../../src/config/index.ts';
import { parseXml } from '../../src/config/xml.ts';
import { parseOverlayMap } from '../../src/core/overlay-map.ts';
import { parseEventRules } from '../../src/services/events/event-rules.ts';
import { parseMuxFile } from '../../src/services/multiplex/mux-file.ts';
import { parsePushMap } from '../../src/services/push/push-map.ts';
import { parseRecordMap } from '../../src/services/record/record-map.ts';
import { parseScheduleFile } from '../../src/services/schedule/definition-file.ts';
import { blocksIn, PAGES, type PageBlock } from '../support/page-blocks.ts';

/** Readers of other configuration files, by root element. */
const FILES: Readonly<Record<string, (xml: string, file: string) => unknown>> = {
  EventInfo: (xml, file) => parseEventRules(parseXml(xml, file)),
  Multiplex: parseMuxFile,
  OverlayMap: (xml, file) => parseOverlayMap(parseXml(xml, file)),
  PushInfo: (xml, file) => parsePushMap(parseXml(xml, file)),
  RecordInfo: (xml, file) => parseRecordMap(parseXml(xml, file)),
  Schedule: (xml, file) => parseScheduleFile(xml, 'tv', file),
};

const HOST = 'Server/VirtualHosts/VirtualHost';
const APPLICATION = `${HOST}/Applications/Application`;
/** The place in `Server.xml` of an element that is shown alone, with the page if the name is ambiguous; default: `Server`. */
const PARENTS: Readonly<Record<string, string>> = {
  API: 'Server/Managers',
  VirtualHost: 'Server/VirtualHosts',
  Application: `${HOST}/Applications`,
  OriginMapStore: HOST,
  OutputProfiles: APPLICATION,
  Providers: APPLICATION,
  SourceLoss: APPLICATION,
  TranscodeWebhook: APPLICATION,
  OutputProfile: `${APPLICATION}/OutputProfiles`,
  Image: `${APPLICATION}/OutputProfiles/OutputProfile/Encodes`,
  'docs/guide/events.md RTMP': `${APPLICATION}/Providers`,
  'docs/guide/publish.md MPEGTS': 'Server/Bind/Providers',
  'docs/guide/publish.md SRT': 'Server/Bind/Providers',
  'docs/guide/push.md Push': `${APPLICATION}/Publishers`,
  'docs/guide/record.md FILE': `${APPLICATION}/Publishers`,
};
/** Required members of an element, added if the page omits them. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  Server: ['<Type>origin</Type>', '<IP>127.0.0.1</IP>', '<Bind/>', '<VirtualHosts/>'],
  VirtualHost: ['<Name>default</Name>', '<Host><Names><Name>*</Name></Names></Host>'],
  Application: ['<Name>app</Name>', '<Type>live</Type>'],
  OutputProfile: ['<Name>p</Name>', '<OutputStreamName>${OriginStreamName}</OutputStreamName>'],
};

/** Replacements for files of other machines, and for omissions. */
const STAND_INS: readonly (readonly [RegExp, string])[] = [
  [/^\s*…\s*$/gm, ''],
  [/<!--.*?-->/gs, ''],
  [/(sha256:c2FsdA):…/, '$1:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU'],
  [/<Host><TLS>\s*<\/TLS><\/Host>/, '<Host><TLS><CertPath>/c.pem</CertPath><KeyPath>/k.pem</KeyPath></TLS></Host>'],
];
const TAG = /<(\/?)([A-Za-z0-9]+)[^>]*?(\/?)>/g;

interface Element {
  readonly name: string;
  readonly xml: string;
}

/** The top-level elements of a text; unclosed elements are closed. */
function elementsOf(text: string): Element[] {
  const open: string[] = [];
  const elements: Element[] = [];
  let from = 0;
  for (const { index, 0: tag, 1: isEnd, 2: name = '', 3: isEmpty } of text.matchAll(TAG)) {
    if (isEnd === '/') open.pop();
    else if (isEmpty !== '/') open.push(name);
    if (open.length > 0) continue;
    elements.push({ name, xml: text.slice(from, index + tag.length).trim() });
    from = index + tag.length;
  }
  const [name] = open;
  if (name === undefined) return elements;
  const ends = open.map((each) => `</${each}>`).reverse();
  return [...elements, { name, xml: text.slice(from).trim() + ends.join('') }];
}

/** An element with its required members. */
function completed({ name, xml }: Element): string {
  const start = xml.indexOf('>') + 1;
  const inner = xml.slice(start, xml.lastIndexOf('</'));
  const children = new Set(elementsOf(inner).map((child) => child.name));
  const missing = (NEEDED[name] ?? []).filter((element) => !children.has(/\w+/.exec(element)?.[0] ?? ''));
  return missing.length === 0 ? xml : xml.slice(0, start) + missing.join('') + xml.slice(start);
}

/** A complete `Server.xml` with elements of a page, all at one place. */
function serverWith(elements: readonly Element[], page: string): string {
  const [{ name } = { name: '' }] = elements;
  const inner = elements.map(completed).join('');
  if (name === 'Server') return inner;
  const parents = (PARENTS[`${page} ${name}`] ?? PARENTS[name] ?? 'Server').split('/').reverse();
  return parents.reduce((within, parent) => {
    const attributes = parent === 'Server' ? ' version="8"' : '';
    return completed({ name: parent, xml: `<${parent}${attributes}>${within}</${parent}>` });
  }, inner);
}

/** Problems that the server reports about a configuration. */
function problemsOf(xml: string): string[] {
  const values: Readonly<Record<string, string>> = {
    STREAM_KEY: 'key',
    STUDIO_KEY: 'studio-1234567890abcdef',
    SITE_TOKEN: 'site-1234567890abcdef',
  };
  const macros = { env: values, home: '/opt/millrace', currentPath: '/' };
  try {
    return parseServerConfig(xml, 'Server.xml', { macros }).warnings.map(formatConfigProblem);
  } catch (error) {
    if (!(error instanceof ConfigErrors)) throw error;
    return [...error.errors, ...error.warnings].map(formatConfigProblem);
  }
}

const blocks = (language: string): PageBlock[] => PAGES.flatMap((page) => blocksIn(page, language));
const named = (each: PageBlock): [string, PageBlock] => [`${each.page}:${each.line}`, each];

test.each(blocks('xml').map(named))('%s is a configuration', (_, { page, text }) => {
  const whole = STAND_INS.reduce((done, [what, by]) => done.replace(what, by), text);
  const elements = elementsOf(whole);
  expect(elements.length).toBeGreaterThan(0);
  const [{ name, xml } = { name: '', xml: '' }] = elements;
  const parse = FILES[name];
  if (parse === undefined) expect(problemsOf(serverWith(elements, page))).toEqual([]);
  else expect(parse(xml, 'file.xml')).toBeTruthy();
});

test.each(blocks('json').map(named))('%s is JSON', (_, { page, text }) => {
  // Each line of JSON in events.md is a separate request.
  const texts = page.endsWith('events.md') ? text.trim().split('\n') : [text];
  for (const each of texts) {
    const value: unknown = JSON.parse(each);
    const profiles = (value as { outputProfiles?: unknown }).outputProfiles;
    if (profiles !== undefined) expect(readOutputProfiles(profiles).typed.outputProfile.length).toBeGreaterThan(0);
  }
});

test('an unknown element, an invalid value and a faulty file are found', () => {
  const told = (text: string): string[] => problemsOf(serverWith(elementsOf(text), 'README.md'));
  expect(told('<Application><PublishKey/></Application>')).toEqual([expect.stringContaining('PublishKey')]);
  expect(told('<Application><SourceLoss><TakeOver>now')).toEqual([expect.stringContaining('must be one of')]);
  expect(told('<Limits><PerAddress><Viewers>7</Viewers></PerAddress></Limits>')).toEqual([]);
});
