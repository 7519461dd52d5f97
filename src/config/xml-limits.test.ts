import { expect, it } from 'vitest';
import { refuseLargeXml } from './xml-limits.ts';

const limits = { tags: 4, attributes: 3 };
const refused = (text: string): string => {
  try {
    refuseLargeXml(text, 'a.sch', limits);
    return '';
  } catch (error) {
    return (error as Error).message;
  }
};

it('counts tags and attributes, and no text that resembles them', () => {
  expect(refused('<a b="1" c=\'2\'><d e="3"/>text</a>')).toBe('');
  expect(refused('<a><b/><c/><d/></a>')).toBe('The XML has more than 4 tags');
  expect(refused('<a b="1" c="2" d="3" e="4"/>')).toBe('The XML has more than 3 attributes');
  expect(
    refused(`<?xml version="1.0" encoding="x" standalone="y"?><!-- <a><b><c><d><e> "" "" "" "" --><a><![CDATA[<b><c><d><e>]]></a>`),
  ).toBe('');
  expect(refused(`<a b="<c><d><e><f><g>" h='"""""""'/>`)).toBe('');
});

it('accepts text cut off at any byte', () => {
  const text = `<?xml version="1.0"?><!-- x --><a b="1"><![CDATA[y]]></a>`;
  for (let end = 0; end <= text.length; end += 1) expect(refused(text.slice(0, end))).toBe('');
});
