import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { loadOrCreateAccessToken } from './access-token.ts';
import { StateStore } from './state-store.ts';

let folder: string;
let logger: RecordingLogger;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-state-'));
  logger = new RecordingLogger();
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

function documentOf(name: string, order = 1) {
  return { name, order, definition: { name }, applications: [{ name: 'app', type: 'live' }] };
}

describe('StateStore', () => {
  it('returns the saved documents, in order, after a restart', async () => {
    const store = new StateStore(folder, logger);
    await store.load();
    await store.save(documentOf('b', 2));
    await store.save(documentOf('a', 1));
    expect(await new StateStore(folder, logger).load()).toEqual([documentOf('a', 1), documentOf('b', 2)]);
  });

  it('keeps every name apart and inside its folder', async () => {
    const names = ['../up', '..', 'a/b', 'A', 'a', 'ü', '*', 'x'.repeat(255), `${'x'.repeat(254)}y`, '호스트'.repeat(30)];
    const store = new StateStore(folder, logger);
    await store.load();
    for (const [index, name] of names.entries()) await store.save(documentOf(name, index));
    expect((await new StateStore(folder, logger).load()).map(({ name }) => name)).toEqual(names);
    const files = await readdir(folder);
    expect(files.length).toBe(names.length);
    // Definitions contain secrets.
    for (const file of files) expect((await stat(join(folder, file))).mode & 0o777).toBe(0o600);
  });

  it('sets torn, foreign and newer files aside, names them, and loads the rest', async () => {
    const store = new StateStore(folder, logger);
    await store.load();
    await store.save(documentOf('good'));
    await store.save(documentOf('torn', 2));
    const whole = await readFile(join(folder, 'torn.json'), 'utf8');
    await writeFile(join(folder, 'torn.json'), whole.slice(0, whole.length / 2));
    await writeFile(join(folder, 'foreign.json'), '{"hello": 1}');
    await writeFile(join(folder, 'newer.json'), whole.replace('"version": 1', '"version": 99').replaceAll('torn', 'newer'));
    await writeFile(join(folder, 'empty.json'), '');
    await writeFile(join(folder, 'renamed.json'), whole);
    const documents = await new StateStore(folder, logger).load();
    expect(documents.map(({ name }) => name)).toEqual(['good']);
    const left = await readdir(folder);
    for (const name of ['torn', 'foreign', 'newer', 'empty', 'renamed']) {
      expect(left.some((file) => file.startsWith(`${name}.json.broken-`))).toBe(true);
      expect(
        logger.lines.some(
          (line) => line.level === 'error' && line.message.length > 0 && String(line.fields['file']).endsWith(`${name}.json`),
        ),
      ).toBe(true);
    }
  });

  it('survives a document cut at any byte', async () => {
    const store = new StateStore(folder, logger);
    await store.load();
    await store.save(documentOf('cut'));
    const whole = await readFile(join(folder, 'cut.json'), 'utf8');
    for (let length = 0; length < whole.length - 1; length += 7) {
      await writeFile(join(folder, 'cut.json'), whole.slice(0, length));
      expect(await new StateStore(folder, logger).load()).toEqual([]);
    }
  });

  it('sets a file at the path of its folder aside', async () => {
    const place = join(folder, 'vhosts');
    await writeFile(place, 'foreign');
    const store = new StateStore(place, logger);
    expect(await store.load()).toEqual([]);
    await store.save(documentOf('a'));
    expect(logger.lines).toMatchObject([{ level: 'error', fields: { file: place } }]);
  });

  it('removes half-written temporary files at start', async () => {
    await writeFile(join(folder, 'x.json.abc.tmp'), '{');
    expect(await new StateStore(folder, logger).load()).toEqual([]);
    expect(await readdir(folder)).toEqual([]);
  });

  it('writes one document in the order of the calls', async () => {
    const store = new StateStore(folder, logger);
    await store.load();
    await Promise.all(Array.from({ length: 20 }, (_, index) => store.save(documentOf('same', index))));
    expect((await new StateStore(folder, logger).load())[0]?.order).toBe(19);
  });

  it('loads no removed document', async () => {
    const store = new StateStore(folder, logger);
    await store.load();
    await store.save(documentOf('gone'));
    await store.remove('gone');
    expect(await new StateStore(folder, logger).load()).toEqual([]);
  });

  it('reports a disk that refuses and keeps the old document', async () => {
    const store = new StateStore(folder, logger);
    await store.load();
    await rm(folder, { recursive: true });
    await expect(store.save(documentOf('x'))).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('loadOrCreateAccessToken', () => {
  it('names the file that it could not create', async () => {
    const file = join(folder, 'missing/access-token');
    await expect(loadOrCreateAccessToken(join(folder, 'missing'), logger)).rejects.toThrow(
      `the access token cannot be stored in ${file}: ENOENT`,
    );
  });

  it('makes one token, readable only by its owner, and keeps it', async () => {
    const first = await loadOrCreateAccessToken(folder, logger);
    const second = await loadOrCreateAccessToken(folder, logger);
    expect(first.created).toBe(true);
    expect(second).toMatchObject({ created: false, token: first.token });
    expect((await stat(first.file)).mode & 0o777).toBe(0o600);
    expect(first.token.length).toBeGreaterThanOrEqual(24);
  });

  it('sets aside a folder in place of the file, and names it', async () => {
    await mkdir(join(folder, 'access-token/inside'), { recursive: true });
    expect((await loadOrCreateAccessToken(folder, logger)).created).toBe(true);
    expect(logger.lines).toMatchObject([{ level: 'error', fields: { file: join(folder, 'access-token') } }]);
    expect((await readdir(folder)).sort()).toEqual(['access-token', expect.stringMatching(/^access-token\.broken-\d+$/)]);
  });
});
