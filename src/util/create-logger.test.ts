import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createLogger, type LogFormat, type ProgramLog } from './create-logger.ts';

/** The content of the log after `write`. */
async function logged(format: LogFormat, write: (logger: ProgramLog) => void): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-log-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'log');
  const descriptor = openSync(file, 'a');
  const logger = await createLogger({ format, level: 'info', descriptor: { descriptor, waits: 'file' } });
  write(logger);
  await logger.flush();
  logger.close();
  closeSync(descriptor);
  return readFileSync(file, 'utf8');
}

/** ESC, CSI of C1, a reversal of direction, a line separator, a line break. */
const HOSTILE = 'a\u001b[2Jb\u009b31mc\u202egnp.exe\u2028d\nINFO: forged';

test('a name cannot command the terminal, hide its letters, or forge a line', async () => {
  const text = await logged('text', (logger) => logger.info({ stream: HOSTILE }, `stream '${HOSTILE}' begins`));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
  expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e\u2028]/);
  expect(text.trimEnd().split('\n')).toHaveLength(1);
  expect(text).toContain("stream 'a\\u001b[2Jb\\u009b31mc\\u202egnp.exe\\u2028d\\u000aINFO: forged' begins");
});

test('an error keeps the lines of its stack, indented', async () => {
  const text = await logged('text', (logger) => logger.error({ err: new Error('of a\u009b peer\nINFO: forged') }, 'it failed'));
  expect(text).toContain('\\u009b');
  expect(text.split('\n').filter((line) => /^\s+at /.test(line)).length).toBeGreaterThan(1);
  expect(text.split('\n').filter((line) => line.startsWith('INFO'))).toEqual([]);
});

test('a line of JSON contains the same text in ASCII escapes', async () => {
  const text = await logged('json', (logger) => logger.child({ app: 'x' }).info({ stream: HOSTILE }, 'begins'));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
  expect(text.trimEnd()).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e\u2028]/);
  expect(JSON.parse(text)).toMatchObject({ level: 'info', app: 'x', stream: HOSTILE, msg: 'begins' });
});

test('a changed level applies at once, also to existing children', async () => {
  const text = await logged('json', (logger) => {
    const child = logger.child({ part: 'x' }).child({ stream: 'y' });
    child.debug({}, 'not yet');
    logger.level = 'debug';
    child.debug({}, 'now');
    logger.level = 'error';
    child.warn({}, 'no more');
    logger.level = 'silent';
    logger.error({}, 'nothing');
    child.error({}, 'nothing');
  });
  expect(
    text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as object),
  ).toEqual([expect.objectContaining({ level: 'debug', part: 'x', stream: 'y', msg: 'now' })]);
});
