/** docs/reference/refusals.md and the texts of the console contain every refusal code. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { REASONS } from '../../src/console/refusal-words.ts';
import { RefusalText } from '../../src/delivery/thread/delivery.ts';
import { RTMP_REFUSALS } from '../../src/services/rtmp/rtmp-session.ts';
import { SRT_REFUSALS } from '../../src/services/srt/srt-publication.ts';
import { WHIP_REFUSALS } from '../../src/services/webrtc/ingest/publish-side.ts';
import { RejectionCode } from '../../src/wire/srt/rejection.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const PAGE = readFileSync(path.join(ROOT, 'docs/reference/refusals.md'), 'utf8');

/** Cells of the table with this header. */
function rows(head: string): string[][] {
  const from = PAGE.indexOf(`${head}\n|`);
  expect(from, `a table ${head}`).toBeGreaterThan(-1);
  const [, , ...lines] = PAGE.slice(from).split('\n\n')[0]?.trimEnd().split('\n') ?? [];
  return lines.map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim().replaceAll('`', '')),
  );
}

/** Matches of `pattern` in the code, sorted and without repetitions. */
function inCode(folders: string, pattern: RegExp): string[][] {
  const files = globSync(`src/${folders}/**/*.ts`, { cwd: ROOT }).filter((file) => !file.endsWith('.test.ts'));
  const found = files.flatMap((file) => [...readFileSync(path.join(ROOT, file), 'utf8').matchAll(pattern)].map(([, ...parts]) => parts));
  return [...new Map(found.map((parts) => [parts.join(' '), parts])).values()].sort((one, other) =>
    one.join(' ') < other.join(' ') ? -1 : 1,
  );
}

/** Every code of `Denied`: members of `DENIALS`, and codes at the places that make a `Denied`. */
function deniedCodes(): string[] {
  const single = inCode('{access,delivery}', /admitted: false, code: '([a-z-]+)'/g);
  const tables = inCode('access', /const DENIALS = \{(.*?)\} as const/gs).flatMap(([body = '']) =>
    [...body.matchAll(/^ {2}'([a-z-]+)':/gm)].map(([, code]) => [code ?? '']),
  );
  return [...single, ...tables].map(([code = '']) => code).sort();
}

describe('the page of refusals has', () => {
  test('the refusals of publishers over each protocol', () => {
    const expected = Object.entries(WHIP_REFUSALS).map(([code, { status }]) => {
      const kind = code as keyof typeof WHIP_REFUSALS;
      return [code, RTMP_REFUSALS[kind][0], String(SRT_REFUSALS[kind]), String(status)];
    });
    expect(rows('| Code | RTMP | SRT | WHIP | Cause, and what to do |').map((cells) => cells.slice(0, 4))).toEqual(expected);
  });

  test('every reason of access control', () => {
    expect(deniedCodes().length).toBeGreaterThan(20);
    expect(
      rows('| Code | Text | What to do |')
        .map(([code = '']) => code)
        .sort(),
    ).toEqual([...new Set(deniedCodes())]);
  });

  test('every number of SRT that is sent to a caller', () => {
    const own = ['CLOSE', 'TIMEOUT'];
    const names = inCode('{services,transport,wire}/srt', /RejectionCode\.([A-Z_]+)/g).flat();
    const expected = names
      .filter((name) => !own.includes(name))
      .map((name) => [String(RejectionCode[name as keyof typeof RejectionCode]), name]);
    const shown = rows('| Number | Name | When |').map((cells) => cells.slice(0, 2));
    expect(shown).toEqual(expected.sort(([one], [other]) => Number(one) - Number(other)));
  });

  test('every fault of the signalling', () => {
    const words: Readonly<Record<string, string>> = { NO_OFFER: 'Cannot create offer' };
    const literal = inCode('services/webrtc', /new SignallingFault\((\d+), (?:'([^']+)'|([A-Z_]+))[,)]/g).map(([code, text, name]) => [
      code,
      text ?? words[name ?? ''] ?? name,
    ]);
    const shown = rows('| Code over the WebSocket | Text | When |').map((cells) => cells.slice(0, 2).join(' '));
    expect(literal.length).toBeGreaterThan(8);
    expect(literal.map((parts) => parts.join(' ')).filter((fault) => !shown.includes(fault))).toEqual([]);
  });

  test('every text of delivery, and every code of its HTTP', () => {
    const texts = rows('| Status | Text | When |').map(([, text]) => text);
    for (const text of Object.values(RefusalText)) expect(texts).toContain(text.trim());
    const faults = inCode('{delivery,services,wire}', /new HttpFault\((\d+), '([A-Z_]+)'/g).map(([status, code]) => [code, status]);
    const sorted = faults.map((parts) => parts.join(' ')).sort();
    expect(rows('| Code | Status |').map((cells) => cells.join(' '))).toEqual(sorted);
  });

  test('every reason for the end of a stream', () => {
    const [[union = ''] = []] = inCode('core', /interface CloseReason \{\s+readonly code:(.*?);/gs);
    const codes = [...union.matchAll(/'([a-z-]+)'/g)].map(([, code]) => code);
    expect(codes.length).toBeGreaterThan(8);
    expect(rows('| Code | Cause |').map(([code]) => code)).toEqual(codes);
  });
});

test('the console has words for every reason of access control', () => {
  expect(Object.keys(REASONS).sort()).toEqual([...new Set(deniedCodes())]);
});
