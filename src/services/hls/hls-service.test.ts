import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { FakeDelivery } from '../../../test/fakes/fake-delivery.ts';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { loadServerConfig } from '../../config/index.ts';
import { AllowedFolders } from '../../util/allowed-folders.ts';
import { Conditions } from '../../util/conditions.ts';
import type { ServiceContext } from '../service.ts';
import { DumpStatus, statusElement } from './dump/dump-info.ts';
import { OpenDumps } from './dump/open-dumps.ts';
import { startHls } from './hls-service.ts';

const SERVER_XML = new URL('../../../test/fixtures/config/server.xml', import.meta.url).pathname;

let stateFolder: string;
beforeEach(() => {
  stateFolder = mkdtempSync(path.join(tmpdir(), 'millrace-hls-'));
});
afterEach(() => rmSync(stateFolder, { recursive: true, force: true }));

async function start(enable = true) {
  const { config } = loadServerConfig(SERVER_XML);
  return await startHls({
    config: { ...config, modules: { ...config.modules, llhls: { enable } } },
    stateFolder,
    writing: new AllowedFolders(null, 'the test'),
    clock: new ManualClock(),
    logger: new RecordingLogger(),
    conditions: new Conditions(),
    delivery: new FakeDelivery(() => {
      throw new Error('there is no stream');
    }),
  } as unknown as ServiceContext);
}

test.each([
  [true, ['llhls', 'hlsv3']],
  [false, ['hlsv3']],
])('with Modules/LLHLS/Enable %s starts the publishers %j', async (enable, kinds) => {
  const service = await start(enable);
  onTestFinished(() => service.finish?.());
  expect(service.publishers?.map(({ kind }) => kind)).toEqual(kinds);
});

test('settles dumps of the last run after the server runs, and not in a start that fails', async () => {
  const infoPath = path.join(stateFolder, 'info.xml');
  await new OpenDumps(stateFolder, new RecordingLogger()).add('dump', infoPath);
  writeFileSync(infoPath, statusElement(DumpStatus.RUNNING));
  await (await start()).finish?.();
  expect(readFileSync(infoPath, 'utf8')).toBe(statusElement(DumpStatus.RUNNING));
  const service = await start();
  service.started?.();
  await service.finish?.();
  expect(readFileSync(infoPath, 'utf8')).toBe(statusElement(DumpStatus.ERROR));
});
