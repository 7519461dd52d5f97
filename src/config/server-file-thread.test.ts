import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { turnsDuring } from '../../test/support/turns-during.ts';
import { WorkThreadLost } from '../util/work-thread.ts';
import { ConfigErrors } from './problem.ts';
import { loadServerConfig } from './server-file.ts';
import { reloadServerConfig, type ServerFileThread } from './server-file-thread.ts';

let folder: string;
const logger = new RecordingLogger();
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-server-file-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const PROVIDERS = '<RTMP/><SRT/><MPEGTS><StreamMap><Stream><Name>s</Name><Port>PORT/udp</Port></Stream></StreamMap></MPEGTS>';
const PUBLISHERS = '<LLHLS><ChunkDuration>0.5</ChunkDuration></LLHLS><WebRTC/><OVT/>';

/** Some six hundred characters for each application. */
function write(applications: number, more = ''): string {
  const file = path.join(folder, `${applications}-${more.length}.xml`);
  const apps = Array.from({ length: applications }, (_, n) => {
    const keys = `<PublishKeys><PublishKey><Name>k</Name><Key>a-key-of-application-${n}</Key></PublishKey></PublishKeys>`;
    return `<Application><Name>app${n}</Name><Type>live</Type>
      <Providers>${PROVIDERS.replace('PORT', String(20_000 + n))}</Providers><Publishers>${PUBLISHERS}</Publishers>${keys}
    </Application>`;
  });
  writeFileSync(
    file,
    `<Server version="8"><Type>origin</Type><IP>*</IP>
      <Bind><Providers><SRT><Port>9999</Port></SRT></Providers><Publishers><SRT><Port>9998</Port></SRT></Publishers></Bind>
      <Managers><API><AccessToken>token</AccessToken></API></Managers>${more}
      <VirtualHosts><VirtualHost><Name>default</Name><Applications>${apps.join('\n')}</Applications></VirtualHost></VirtualHosts></Server>`,
  );
  return file;
}

const never: ServerFileThread = {
  run: () => {
    throw new Error('it went to the thread');
  },
};

test('a large file is read in the thread while the event loop turns, and is the same as one read in place', async () => {
  const file = write(300, '<Unknown/>');
  const { turns, result } = await turnsDuring(() => reloadServerConfig(file, [], logger));
  const { placeOf, ...there } = result;
  expect(turns).toBeGreaterThan(10);
  const { placeOf: placeHere, ...here } = loadServerConfig(file);
  expect(there).toStrictEqual(here);
  expect(there.warnings).toHaveLength(1);
  expect(there.virtualHosts[0]?.applications[7]?.typed).toBe(there.config.virtualHosts[0]?.applications[7]);
  for (const [a, b] of [[there, here]] as const) {
    const [srt, own] = [a, b].map(({ config }) => config.bind.providers.srt);
    const [stream, ownStream] = [a, b].map(({ config }) => config.virtualHosts[0]?.applications[9]?.providers.mpegts?.streams[0]);
    if (srt === undefined || own === undefined || stream === undefined || ownStream === undefined) throw new Error('something is missing');
    expect([placeOf(srt), placeOf(srt, 'port'), placeOf(stream)]).toEqual([placeHere(own), placeHere(own, 'port'), placeHere(ownStream)]);
    expect(placeOf(stream)).toMatchObject({ path: expect.stringContaining('Application[10]/Providers/MPEGTS'), line: expect.any(Number) });
  }
});

test('everything that is wrong with a large file is told with its place', async () => {
  const file = write(300, '<Limits><PerAddress><Viewers>many</Viewers></PerAddress></Limits><Unknown/><Unknown2/>');
  const errors: ConfigErrors[] = [];
  for (const read of [() => loadServerConfig(file), () => reloadServerConfig(file, [], logger)]) {
    try {
      await read();
    } catch (error) {
      errors.push(error as ConfigErrors);
    }
  }
  expect(errors).toHaveLength(2);
  const [here, there] = errors;
  expect(there).toBeInstanceOf(ConfigErrors);
  expect(there?.message).toBe(here?.message);
  expect(there?.errors.map(({ path, line, file: of }) => ({ path, line, of }))).toEqual([
    { path: 'Server/Limits/PerAddress/Viewers', line: 3, of: file },
  ]);
  expect(there?.warnings).toEqual(here?.warnings);
});

test('a small file is read in place, and one that is not there is told', async () => {
  expect((await reloadServerConfig(write(1), [], logger, never)).config).toEqual(loadServerConfig(write(1)).config);
  await expect(reloadServerConfig(path.join(folder, 'none.xml'), [], logger, never)).rejects.toThrow('ENOENT');
});

test('the size of files that were included before counts', async () => {
  await expect(reloadServerConfig(write(1), [write(300)], logger, never)).rejects.toThrow('it went to the thread');
});

test('a large file is read in place when its thread is lost, and refused when it takes too long', async () => {
  const file = write(300);
  const failing = (error: Error): ServerFileThread => ({ run: () => Promise.reject(error) });
  const lost = failing(new WorkThreadLost("the thread 'configuration' ended: exit code 1"));
  expect((await reloadServerConfig(file, [], logger, lost)).config.virtualHosts).toHaveLength(1);
  expect(logger.lines.at(-1)).toMatchObject({ level: 'warn', message: expect.stringContaining('exit code 1') });
  const refused = reloadServerConfig(file, [], logger, failing(new Error('it took longer than 60 s')));
  await expect(refused).rejects.toThrow(`${file}: The file cannot be read: it took longer than 60 s`);
});
