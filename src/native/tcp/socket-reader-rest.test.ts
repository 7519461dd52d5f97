import assert from 'node:assert';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ReadSockets, socketEvents } from '../../../test/fakes/read-sockets.ts';
import { loadAddon } from '../addon.ts';
import { Rest } from './socket-reader.ts';

const { addon: built } = loadAddon();

describe.each([
  { name: 'with the addon', addon: built },
  { name: 'without the addon', addon: null },
])('a socket reader $name, whose further data can wait', ({ addon }) => {
  let sockets: ReadSockets;
  beforeEach(() => {
    sockets = new ReadSockets(addon);
  });
  afterEach(() => {
    sockets.close();
  });

  /** Behind the last of them: a call that comes before does nothing. */
  const sweep = (): Promise<void> => new Promise((resolve) => sockets.reader.sweep(resolve));

  it('keeps sockets at rest after each read until the next sweep', async () => {
    await sockets.listen();
    sockets.rest = Rest.LONG;
    const [first, second] = [await sockets.connect(), await sockets.connect()];
    for (const round of ['1', '2', '3']) {
      for (const { client, bytes } of [first, second]) {
        const before = bytes().toString();
        client.write(round);
        await expect.poll(() => bytes().toString()).toBe(before + round);
        client.write('later');
        await sockets.others();
        expect(bytes().toString()).toBe(before + round);
      }
      await sweep();
      for (const { bytes } of [first, second]) await expect.poll(() => bytes().toString()).toMatch(/later$/);
      // The last data was read, so the sockets rest again.
      await sweep();
    }
  });

  it('reads more sockets than one call handles, all of them, and reports once after the last', async () => {
    await sockets.listen();
    sockets.rest = Rest.LONG;
    const many = [];
    for (let index = 0; index < 8; index += 1) many.push(await sockets.connect());
    for (const { client, bytes } of many) {
      client.write('first');
      await expect.poll(() => bytes().toString()).toBe('first');
    }
    for (const { client } of many) await new Promise<void>((resolve) => client.write('later', () => resolve()));
    sockets.work = 3;
    let turns = 0;
    let turn = setImmediate(function count() {
      turns += 1;
      turn = setImmediate(count);
    });
    const done = sweep();
    // The previous call is still reading, and a second call does not restart it.
    let calls = 0;
    if (addon !== null) sockets.reader.sweep(() => (calls += 1));
    await done;
    const turnsAtEnd = turns;
    clearImmediate(turn);
    sockets.work = 0;
    // Each read takes longer than a time slice: the server's other work gets its turn after it.
    if (addon !== null) expect(turnsAtEnd).toBeGreaterThanOrEqual(many.length - 1);
    // Node.js reads the returned sockets in a later turn.
    expect(many.every(({ bytes }) => bytes().toString() === 'firstlater')).toBe(addon !== null);
    for (const { bytes } of many) await expect.poll(() => bytes().toString()).toBe('firstlater');
    for (let n = 0; n < 2 * many.length; n += 1) await new Promise<void>((resolve) => setImmediate(resolve));
    expect(calls).toBe(0);
  });

  it.skipIf(addon === null)('continues with the other sockets when a callback throws', async () => {
    await sockets.listen();
    sockets.rest = Rest.LONG;
    const [broken, sound] = [await sockets.connect(), await sockets.connect()];
    const told = socketEvents(broken.socket);
    for (const { client, bytes } of [broken, sound]) {
      client.write('first');
      await expect.poll(() => bytes().toString()).toBe('first');
      await new Promise<void>((resolve) => client.write('later', () => resolve()));
    }
    broken.client.on('error', () => undefined);
    Object.defineProperty(broken.socket, 'isPaused', { value: () => assert.fail('a fault') });
    await sweep();
    await sweep();
    await expect.poll(() => sound.bytes().toString()).toBe('firstlater');
    await expect.poll(() => told).toContain('close');
  });

  it('sees ends and resets in a sweep', async () => {
    await sockets.listen();
    sockets.rest = Rest.LONG;
    const [ended, reset] = [await sockets.connect(), await sockets.connect()];
    const told = [socketEvents(ended.socket), socketEvents(reset.socket)];
    for (const { client, bytes } of [ended, reset]) {
      client.write('rest');
      await expect.poll(() => bytes().toString()).toBe('rest');
    }
    ended.client.end(' in peace');
    reset.client.resetAndDestroy();
    await sockets.others();
    expect(told).toEqual([[], []]);
    await sweep();
    await expect.poll(() => told[1]).toEqual(['ECONNRESET', 'close']);
    await expect.poll(() => ended.bytes().toString()).toBe('rest in peace');
    await sweep();
    await expect.poll(() => told[0]).toEqual(['end', 'close']);
  });

  it('reads on without a rest after `readNow`, until the second sweep', async () => {
    await sockets.listen();
    sockets.rest = Rest.LONG;
    const { client, socket, bytes } = await sockets.connect();
    const told = socketEvents(socket);
    const say = async (word: string): Promise<void> => {
      client.write(word);
      await expect.poll(() => bytes().toString()).toMatch(new RegExp(`${word}$`));
    };
    await say('one');
    sockets.reader.readNow();
    await say('two');
    await sweep();
    await say('three');
    await sweep();
    await say('four');
    client.write('five');
    await sockets.others();
    expect(bytes().toString()).toBe('onetwothreefour');
    sockets.reader.readNow();
    client.end();
    await expect.poll(() => told).toEqual(['end', 'close']);
    expect(bytes().toString()).toBe('onetwothreefourfive');
    await sweep();
    await sweep();
  });

  it('reads neither a paused nor a destroyed socket', async () => {
    await sockets.listen();
    sockets.rest = Rest.LONG;
    const [paused, destroyed] = [await sockets.connect(), await sockets.connect()];
    const told = socketEvents(destroyed.socket);
    for (const { client, bytes } of [paused, destroyed]) {
      client.write('first');
      await expect.poll(() => bytes().toString()).toBe('first');
      client.write(' second');
    }
    paused.socket.pause();
    destroyed.client.on('error', () => undefined);
    destroyed.socket.destroy();
    await sweep();
    await sockets.others();
    expect([paused.bytes().toString(), destroyed.bytes().toString(), told]).toEqual(['first', 'first', ['close']]);
    paused.socket.resume();
    await expect.poll(() => paused.bytes().toString()).toBe('first second');
  });

  it('does not rest after a large read, because more data waits', async () => {
    await sockets.listen();
    sockets.rest = Rest.LONG;
    const { client, socket, reads } = await sockets.connect();
    socket.pause();
    client.write(Buffer.alloc(3_000_000));
    socket.resume();
    await expect.poll(() => reads.length).toBeGreaterThan(1);
    expect(reads[0]).toBeGreaterThan(48 * 1024);
  });

  it('continues immediately with a socket that has more data', async () => {
    await sockets.listen();
    sockets.rest = Rest.LONG;
    const { client, bytes } = await sockets.connect();
    client.write(Buffer.alloc(3_000_000));
    // A small read may come first.
    const sweeping = setInterval(() => sockets.reader.sweep(), 100);
    await expect.poll(() => bytes().length).toBe(3_000_000);
    clearInterval(sweeping);
  });
});
