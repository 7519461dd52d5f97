import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { FakeDelivery } from '../../../test/fakes/fake-delivery.ts';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { loadServerConfig } from '../../config/index.ts';
import { AllowedFolders } from '../../util/allowed-folders.ts';
import { Conditions } from '../../util/conditions.ts';
import type { ServiceContext } from '../service.ts';
import { startHls } from './hls-service.ts';

const SERVER_XML = new URL('../../../test/fixtures/config/server.xml', import.meta.url).pathname;

test.each([
  [true, ['llhls', 'hlsv3']],
  [false, ['hlsv3']],
])('with Modules/LLHLS/Enable %s there are the publishers %j', async (enable, kinds) => {
  const stateFolder = mkdtempSync(path.join(tmpdir(), 'millrace-hls-'));
  onTestFinished(() => rmSync(stateFolder, { recursive: true, force: true }));
  const { config } = loadServerConfig(SERVER_XML);
  const service = await startHls({
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
  onTestFinished(() => service.finish?.());
  expect(service.publishers?.map(({ kind }) => kind)).toEqual(kinds);
});
