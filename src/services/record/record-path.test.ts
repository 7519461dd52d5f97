import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PathRefused } from '../../util/allowed-folders.ts';
import { belowRoot, containerOf, DEFAULT_FILE_PATH, expandPath, type PathValues, randomName, temporaryPath } from './record-path.ts';

const values: PathValues = {
  transactionId: 'T',
  id: 'rec/1',
  vhost: 'default',
  app: 'app',
  sourceStream: 'in',
  stream: 'out',
  sequence: 7,
  startTime: new Date(2026, 1, 3, 4, 5, 6).getTime(),
  endTime: 0,
};

test.each([
  ['/${VirtualHost}/${Application}/${Stream}/${SourceStream}.ts', '/default/app/out/in.ts'],
  ['${Id}_${Sequence}_${TransactionId}.mp4', 'rec_1_7_T.mp4'],
  ['${StartTime:YYYY-MM-DD hh.mm.ss}', '2026-02-03 04.05.06'],
  ['${StartTime:hhmmss}_${EndTime:YYYYMMDDhhmmss}', '040506_19700101000000'],
  ['${StartTime}', '20260203040506'],
  ['${Other} ${Id:x} $Id {Id} ${', '${Other} rec_1 $Id {Id} ${'],
  [DEFAULT_FILE_PATH, '/T_default_app_out_20260203040506_19700101000000.ts'],
])('%s becomes %s', (template, path) => {
  expect(expandPath(template, values)).toBe(path);
});

test('an unknown end keeps its macro', () => {
  const path = expandPath('/${Stream}/${EndTime:YYYY}_${EndTime}.ts', { ...values, endTime: null });
  expect(path).toBe('/out/${EndTime:YYYY}_${EndTime}.ts');
});

test.each([
  ['/rec/a.mp4', '/rec/tmp_rec_1_a.mp4'],
  ['/rec/${Id}_${Sequence}.ts', '/rec/tmp_rec_1_rec_1_7.ts'],
  ['/rec/${Stream}_${EndTime:YYYYMMDD}-${EndTime}.mp4', '/rec/tmp_rec_1_out.mp4'],
  ['/rec/${EndTime:YYYY}/${EndTime}/x.ts', '/rec/tmp_rec_1_x.ts'],
  ['/rec/${EndTime}.ts', '/rec/tmp_rec_1_.ts'],
  [`/rec/${'x'.repeat(255)}`, `/rec/tmp_rec_1_${'x'.repeat(245)}`],
  [DEFAULT_FILE_PATH, '/tmp_rec_1_T_default_app_out_20260203040506.ts'],
])('%s is %s while it is recorded', (template, path) => {
  expect(temporaryPath(template, values)).toBe(path);
});

test('an id adds only letters, digits and safe separators to a file name', () => {
  const nameOf = (id: string) => temporaryPath('/rec/x.ts', { ...values, id });
  expect(nameOf('../\0\n*é字 ')).toBe('/rec/tmp_..____é字__x.ts');
  expect(nameOf('i'.repeat(300))).toBe(`/rec/tmp_${'i'.repeat(40)}_x.ts`);
});

test.each([
  ['/data/rec/a.ts', '/root/data/rec/a.ts'],
  ['a.ts', '/root/a.ts'],
  ['//a//b.ts', '/root/a/b.ts'],
  ['./a..b/...ts', '/root/a..b/...ts'],
])('%s is below the root', (path, full) => {
  expect(belowRoot('/root', path)).toBe(full);
});

test('a name with any parts stays inside the root or is refused', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('..', '.', '/', '\\', 'a', '\0', '%2e%2e'), { maxLength: 8 }), (parts) => {
      try {
        const path = belowRoot('/root/x', expandPath('/${Id}/${Stream}.ts', { ...values, id: parts.join(''), stream: parts.join('') }));
        expect(path.startsWith('/root/x/')).toBe(true);
      } catch (error) {
        expect(error).toBeInstanceOf(PathRefused);
      }
    }),
  );
  expect(() => belowRoot('/root', 'a/../../b')).toThrow('contains ".."');
});

test('the extension decides about the container', () => {
  expect(['a.mp4', 'a.MP4', 'a.ts', 'a.bogus', 'mp4', 'a.mp4/b'].map(containerOf)).toEqual(['mp4', 'mp4', 'ts', 'ts', 'ts', 'ts']);
});

test('names are random with equal length', () => {
  expect(randomName(16)).toMatch(/^\w{16}$/);
  expect(randomName(16)).not.toBe(randomName(16));
});
