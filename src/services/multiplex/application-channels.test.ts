import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { FakeWork } from '../../../test/fakes/fake-work.ts';
import { ladder, setUp, tearDown, told } from '../../../test/fakes/multiplex-core.ts';
import { AllowedFolders } from '../../util/allowed-folders.ts';
import { ApplicationChannels } from './application-channels.ts';
import { formatMuxFile } from './mux-file.ts';

afterEach(tearDown);

describe('the files of multiplex channels', () => {
  it('are written by the API, and followed', async () => {
    const { app, of, folder } = await setUp();
    await of(app).save(ladder('ch', 'one'));
    const path = join(folder, 'app', 'ch.mux');
    expect(of(app).pathOf('ch')).toBe(path);
    expect(readFileSync(path, 'utf8')).toBe(formatMuxFile(ladder('ch', 'one')));
    writeFileSync(join(folder, 'app', 'dropped.mux'), formatMuxFile(ladder('new', 'one')));
    await expect.poll(() => of(app).channels.map(({ name }) => name)).toEqual(['ch', 'new']);
    rmSync(path);
    await expect.poll(() => of(app).channels.map(({ name }) => name)).toEqual(['new']);
    await of(app).remove('new');
    expect(existsSync(join(folder, 'app', 'dropped.mux'))).toBe(false);
  });

  it('keep a channel when they are rewritten unchanged, and replace it when its definition changes', async () => {
    const { app, of, channel, folder, logger } = await setUp();
    await of(app).save(ladder('ch', 'one'));
    const before = channel('ch');
    await of(app).save(ladder('ch', 'one'));
    writeFileSync(join(folder, 'app', 'ch.mux'), `${formatMuxFile(ladder('ch', 'one'))}\n<!-- a word -->\n`);
    writeFileSync(join(folder, 'app', 'broken.mux'), '<Multiplex>');
    await expect.poll(() => told(logger).includes('broken.mux cannot be used')).toBe(true);
    expect(channel('ch')).toBe(before);
    await of(app).save(ladder('ch', 'one', 'two'));
    expect(channel('ch')).not.toBe(before);
    expect(before.state).toBe('Stopped');
  });

  it('are used once when several define one channel', async () => {
    const { app, of, folder, logger } = await setUp();
    for (const [file, stream] of Object.entries({ a: 'one', b: 'two' })) {
      writeFileSync(join(folder, 'app', `${file}.mux`), formatMuxFile(ladder('ch', stream)));
    }
    await expect.poll(() => told(logger).includes('b.mux is left out')).toBe(true);
    const [only, none] = of(app).channels;
    expect([only?.definition.sourceStreams[0]?.name, none]).toEqual(['one', undefined]);
    await of(app).remove('ch');
    expect(of(app).get('ch')?.definition.sourceStreams[0]?.name).toBe('two');
  });

  it('are not overwritten when they define another channel', async () => {
    const { app, of, folder } = await setUp();
    const path = join(folder, 'app', 'a.mux');
    writeFileSync(path, formatMuxFile(ladder('b', 'one')));
    await expect.poll(() => of(app).get('b')?.name).toBe('b');
    await expect(of(app).save(ladder('a', 'two'))).rejects.toThrow("a.mux defines the multiplex channel 'b'");
    expect(readFileSync(path, 'utf8')).toBe(formatMuxFile(ladder('b', 'one')));
    expect(of(app).channels.map(({ name }) => name)).toEqual(['b']);
    await of(app).save(ladder('b', 'two'));
    expect(readFileSync(path, 'utf8')).toBe(formatMuxFile(ladder('b', 'two')));
  });

  it('are read once when they change, for any number of waiting channels', async () => {
    const { app, of, channels } = await setUp();
    for (let index = 0; index < 20; index += 1) await of(app).save(ladder(`ch${index}`, 'one', 'two', 'three'));
    const listed = vi.spyOn(ApplicationChannels.prototype, 'channels', 'get');
    await of(app).save(ladder('last', 'one', 'two', 'three'));
    channels.look();
    // Once for each application.
    expect(listed).toHaveBeenCalledTimes(2);
    listed.mockRestore();
  });

  it('stay inside the allowed folders', async () => {
    const outside = mkdtempSync(join(tmpdir(), 'millrace-outside-'));
    const { app, of } = await setUp({ allowed: new AllowedFolders([outside], 'the test') });
    await expect(of(app).save(ladder('ch', 'one'))).rejects.toThrow('is outside of the folders that the test allows');
    const { folder, app: other, of: channels, logger } = await setUp();
    writeFileSync(join(outside, 'secret.mux'), formatMuxFile(ladder('secret', 'one')));
    symlinkSync(join(outside, 'secret.mux'), join(folder, 'app', 'link.mux'));
    await expect.poll(() => told(logger).includes('leads out of the folder')).toBe(true);
    expect(channels(other).channels).toEqual([]);
  });
});

describe('multiplex channels of other nodes', () => {
  it('are files like those of the API, under the names of the channels', async () => {
    const work = new FakeWork('others');
    const { app, of, folder, channel } = await setUp({ work });
    const { shared } = of(app);
    const file = formatMuxFile(ladder('ch', 'one'));
    expect([shared.has('ch'), await shared.adopt('ch', { file }), shared.has('ch'), channel('ch').state]).toEqual([
      false,
      true,
      true,
      'Pulling',
    ]);
    expect(readFileSync(join(folder, 'app', 'ch.mux'), 'utf8')).toBe(file);
    await of(app).save(ladder('ch', 'two'));
    expect(work.told.get('multiplex/default/app/ch')).toEqual({ file: formatMuxFile(ladder('ch', 'two')) });
    await expect(shared.adopt('other', { file })).rejects.toThrow('its definition is that of another channel');
    expect([await shared.drop('ch'), of(app).channels]).toEqual([true, []]);
    await of(app).save(ladder('ch', 'one'));
    await of(app).remove('ch');
    expect(work.told.get('multiplex/default/app/ch')).toBeNull();
  });

  it('do not replace a file that defines another channel', async () => {
    const { app, of, folder } = await setUp();
    const path = join(folder, 'app', 'a.mux');
    writeFileSync(path, formatMuxFile(ladder('b', 'one')));
    await expect.poll(() => of(app).get('b')?.name).toBe('b');
    const { shared } = of(app);
    await expect(shared.adopt('a', { file: formatMuxFile(ladder('a', 'two')) })).rejects.toThrow("a.mux defines the multiplex channel 'b'");
    expect([shared.has('a'), await shared.adopt('b', { file: formatMuxFile(ladder('b', 'two')) })]).toEqual([false, false]);
    expect(readFileSync(path, 'utf8')).toBe(formatMuxFile(ladder('b', 'one')));
  });
});
