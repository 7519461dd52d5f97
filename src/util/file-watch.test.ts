import { EventEmitter } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { until } from '../../test/harness/poll.ts';
import { FileWatch, type FileWatchOptions } from './file-watch.ts';

const NEVER = 3_600_000;
let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'file-watch-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Watched {
  /** Content of the files at each call. */
  readonly seen: string[];
  readonly logger: RecordingLogger;
  readonly watch: FileWatch;
}

async function watched(paths: readonly string[], options: Partial<FileWatchOptions> = {}): Promise<Watched> {
  const seen: string[] = [];
  const logger = new RecordingLogger();
  const changed = (): void => void seen.push(paths.map((file) => (existsSync(file) ? readFileSync(file, 'utf8') : '-')).join(' '));
  const watch = new FileWatch({ paths, changed, logger, times: { poll: NEVER, settle: 20 }, ...options });
  onTestFinished(() => watch.close());
  await until('the first call', () => seen.length === 1);
  return { seen, logger, watch };
}

/** The layout of certbot: links in `live` to files in `archive`. */
function certbot(): { paths: string[]; renew: (version: number) => void } {
  const [live, archive] = [join(folder, 'live/x'), join(folder, 'archive/x')] as const;
  for (const made of [live, archive]) mkdirSync(made, { recursive: true });
  const renew = (version: number): void => {
    for (const name of ['cert', 'key']) {
      writeFileSync(join(archive, `${name}${version}.pem`), `${name}${version}`);
      rmSync(join(live, `${name}.pem`), { force: true });
      symlinkSync(`../../archive/x/${name}${version}.pem`, join(live, `${name}.pem`));
    }
  };
  renew(1);
  return { paths: [join(live, 'cert.pem'), join(live, 'key.pem')], renew };
}

/** The layout of Kubernetes: the folder itself is a link that a rename switches. */
function mounted(): { paths: string[]; renew: (version: number) => void } {
  const renew = (version: number): void => {
    const data = join(folder, `..${version}`);
    mkdirSync(data);
    for (const name of ['cert', 'key']) writeFileSync(join(data, name), `${name}${version}`);
    symlinkSync(`..${version}`, join(folder, '..next'));
    renameSync(join(folder, '..next'), join(folder, '..data'));
  };
  renew(1);
  for (const name of ['cert', 'key']) symlinkSync(`..data/${name}`, join(folder, `${name}.pem`));
  return { paths: [join(folder, 'cert.pem'), join(folder, 'key.pem')], renew };
}

/** Files replaced one after the other by renames, as careful programs do. */
function renamed(): { paths: string[]; renew: (version: number) => void } {
  const paths = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const renew = (version: number): void => {
    for (const [n, name] of ['cert', 'key'].entries()) {
      writeFileSync(join(folder, 'new'), `${name}${version}`);
      renameSync(join(folder, 'new'), paths[n] ?? '');
    }
  };
  renew(1);
  return { paths, renew };
}

/** Files overwritten in place. */
function written(): { paths: string[]; renew: (version: number) => void } {
  const paths = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const renew = (version: number): void => {
    for (const [n, name] of ['cert', 'key'].entries()) writeFileSync(paths[n] ?? '', `${name}${version}`);
  };
  renew(1);
  return { paths, renew };
}

const MANNERS = { certbot, mounted, renamed, written };

describe.each(Object.entries(MANNERS))('files that are renewed: %s', (_name, manner) => {
  test('are reported by the system', async () => {
    const { paths, renew } = manner();
    const { seen } = await watched(paths);
    renew(2);
    await until('the second version', () => seen.at(-1) === 'cert2 key2');
    renew(3);
    await until('the third version', () => seen.at(-1) === 'cert3 key3');
    expect(seen[0]).toBe('cert1 key1');
  });

  test('are found by polling without reports of the system, which is logged once', async () => {
    const { paths, renew } = manner();
    const watch = (): never => {
      throw new Error('ENOSPC: system limit for number of file watchers reached');
    };
    const { seen, logger } = await watched(paths, { watch, times: { poll: 30, settle: 10 } });
    for (const version of [2, 3]) {
      renew(version);
      await until(`version ${version}`, () => seen.at(-1) === `cert${version} key${version}`);
    }
    expect(logger.lines.map(({ level, message }) => [level, message])).toEqual([
      ['info', expect.stringMatching(/^the system does not report changes in .*: its files are checked every 0\.03 s$/)],
    ]);
  });
});

test('a pair is reported when its files rest, not while they are written', async () => {
  const { paths, renew } = written();
  let look = (): void => undefined;
  // The test decides when the system reports a change.
  const watch = (_folder: string, told: () => void) => {
    look = told;
    return Object.assign(new EventEmitter(), { close: () => undefined });
  };
  const { seen } = await watched(paths, { watch, times: { poll: NEVER, settle: 1500 } });
  for (const version of [2, 3, 4]) {
    renew(version);
    look();
  }
  await until('the last version', () => seen.length > 1);
  expect(seen).toEqual(['cert1 key1', 'cert4 key4']);
});

test('a missing file is reported when it appears, even in a missing folder', async () => {
  const late = join(folder, 'later', 'cert.pem');
  const { seen } = await watched([late], { times: { poll: 30, settle: 10 } });
  expect(seen).toEqual(['-']);
  mkdirSync(join(folder, 'later'));
  writeFileSync(late, 'here');
  await until('the file', () => seen.at(-1) === 'here');
  rmSync(join(folder, 'later'), { recursive: true });
  await until('the missing file is reported', () => seen.at(-1) === '-');
  mkdirSync(join(folder, 'later'));
  writeFileSync(late, 'again');
  await until('the new file is reported', () => seen.at(-1) === 'again');
});

test('files that never rest are reported after all', async () => {
  const { paths, renew } = written();
  const { seen } = await watched(paths, { times: { poll: NEVER, settle: 10 } });
  let version = 1;
  const restless = setInterval(() => {
    version += 1;
    renew(version);
  }, 1);
  onTestFinished(() => clearInterval(restless));
  await until('a call', () => seen.length > 1);
});

test('a failing watcher is closed, and polling continues', async () => {
  const { paths, renew } = written();
  const watchers: EventEmitter[] = [];
  const watch = () => {
    const watcher = Object.assign(new EventEmitter(), { close: () => undefined });
    watchers.push(watcher);
    if (watchers.length > 1) throw new Error('no more');
    return watcher;
  };
  const { seen, logger } = await watched(paths, { watch, times: { poll: 30, settle: 10 } });
  watchers[0]?.emit('error', new Error('gone'));
  renew(2);
  await until('the new version', () => seen.at(-1) === 'cert2 key2');
  expect(logger.lines).toHaveLength(1);
});

test('a failing callback is logged, and the next change is reported', async () => {
  const { paths, renew } = written();
  const logger = new RecordingLogger();
  let calls = 0;
  const changed = async (): Promise<void> => {
    calls += 1;
    throw new Error('cannot');
  };
  const watch = new FileWatch({ paths, changed, logger, times: { poll: 30, settle: 10 } });
  onTestFinished(() => watch.close());
  await until('the first call', () => calls === 1);
  renew(2);
  await until('the second call', () => calls === 2);
  expect(logger.matching('the watch over files failed inside the server').length).toBeGreaterThan(0);
});

test('nothing is reported after the close', async () => {
  const { paths, renew } = written();
  const { seen, watch } = await watched(paths, { times: { poll: 5, settle: 1 } });
  watch.close();
  watch.close();
  renew(2);
  const other = await watched(paths, { times: { poll: 5, settle: 1 } });
  renew(3);
  await until('another watch to tell', () => other.seen.at(-1) === 'cert3 key3');
  expect(seen).toEqual(['cert1 key1']);
});
