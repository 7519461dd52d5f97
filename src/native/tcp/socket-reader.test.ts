import assert from 'node:assert';
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import tls from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { selfSigned } from '../../../test/fakes/self-signed.ts';
import { until } from '../../../test/harness/poll.ts';
import { loadAddon } from '../addon.ts';
import { Rest, SocketReader } from './socket-reader.ts';

interface Accepted {
  readonly accepted: net.Socket;
  readonly socket: net.Socket;
  readonly bytes: () => Buffer;
  /** What each read has brought. */
  readonly reads: readonly number[];
}

/** What was told of a socket, in order. */
function events(socket: net.Socket): string[] {
  const told: string[] = [];
  for (const name of ['end', 'close']) socket.on(name, () => told.push(name));
  socket.on('error', (error: NodeJS.ErrnoException) => told.push(error.code ?? error.message));
  return told;
}

const { addon: built } = loadAddon();

describe.each([
  { name: 'with the addon', addon: built },
  { name: 'without the addon', addon: null },
])('a socket reader $name', ({ addon }) => {
  let reader = new SocketReader(addon);
  const clients: net.Socket[] = [];
  let server: net.Server;
  /** What is answered for every read. */
  let rest: Rest = Rest.NONE;
  /** For how long, ms, nothing that comes will be needed, in a short rest. */
  let slack = 0;
  /** How often that was asked. */
  let asked = 0;
  /** How long each read takes, ms. */
  let work = 0;

  /** Connects a client; resolves with both ends. */
  async function connect(): Promise<Accepted & { readonly client: net.Socket }> {
    const taken = Promise.withResolvers<Accepted>();
    server.once('connection', (accepted: net.Socket) => {
      let bytes = Buffer.alloc(0);
      const reads: number[] = [];
      const onRead = (data: Buffer, length: number): Rest => {
        bytes = Buffer.concat([bytes, data.subarray(0, length)]);
        reads.push(length);
        const from = performance.now();
        while (performance.now() - from < work);
        return rest;
      };
      const socket = reader.adopt(accepted, onRead, () => {
        asked += 1;
        return slack;
      });
      taken.resolve({ accepted, socket, bytes: () => bytes, reads });
    });
    const client = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
    clients.push(client);
    await once(client, 'connect');
    return { client, ...(await taken.promise) };
  }

  /** Resolves when somebody was heard who spoke later than all before. */
  async function others(): Promise<void> {
    const before = rest;
    rest = Rest.NONE;
    const other = await connect();
    other.client.write('other');
    await until('the other is heard', () => other.bytes().toString() === 'other', { everyMs: 5 });
    rest = before;
  }

  async function listen(): Promise<void> {
    server = net.createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  }

  afterEach(async () => {
    rest = Rest.NONE;
    slack = 0;
    for (const client of clients.splice(0)) client.destroy();
    server.close();
    if (server.listening) await once(server, 'close');
  });

  it('hands over all bytes of several sockets that share its memory, in order', async () => {
    await listen();
    const ends = [await connect(), await connect()];
    const sent = ends.map((_end, index) => Buffer.alloc(1_000_000, `${index}abc`));
    for (const [index, { client }] of ends.entries()) client.write(sent[index] ?? '');
    for (const [index, { bytes }] of ends.entries()) {
      await expect.poll(() => bytes().length).toBe(1_000_000);
      expect(bytes().equals(sent[index] ?? Buffer.of())).toBe(true);
    }
  });

  it('reads nothing while the socket is paused', async () => {
    await listen();
    const { client, socket, bytes } = await connect();
    client.write('first');
    await expect.poll(() => bytes().toString()).toBe('first');
    socket.pause();
    client.write(' second');
    client.write(' third');
    // What another socket brings was sent later.
    const other = await connect();
    other.client.write('other');
    await expect.poll(() => other.bytes().toString()).toBe('other');
    expect(bytes().toString()).toBe('first');
    socket.resume();
    await expect.poll(() => bytes().toString()).toBe('first second third');
  });

  describe('told that what comes next can wait', () => {
    /** Behind the last of them: a call that comes before does nothing. */
    const wake = (): Promise<void> => new Promise((resolve) => reader.wake(resolve));

    it('lets sockets rest after a read until it is woken, again and again', async () => {
      await listen();
      rest = Rest.LONG;
      const [first, second] = [await connect(), await connect()];
      for (const round of ['1', '2', '3']) {
        for (const { client, bytes } of [first, second]) {
          const before = bytes().toString();
          client.write(round);
          await expect.poll(() => bytes().toString()).toBe(before + round);
          client.write('later');
          await others();
          expect(bytes().toString()).toBe(before + round);
        }
        await wake();
        for (const { bytes } of [first, second]) await expect.poll(() => bytes().toString()).toMatch(/later$/);
        // What came last was read, so they rest again.
        await wake();
      }
    });

    it('reads several times as many as fit into a stretch, all of them, and calls back behind the last', async () => {
      await listen();
      rest = Rest.LONG;
      const many = [];
      for (let index = 0; index < 8; index += 1) many.push(await connect());
      for (const { client, bytes } of many) {
        client.write('first');
        await expect.poll(() => bytes().toString()).toBe('first');
      }
      for (const { client } of many) await new Promise<void>((resolve) => client.write('later', () => resolve()));
      work = 3;
      let turns = 0;
      let turn = setImmediate(function count() {
        turns += 1;
        turn = setImmediate(count);
      });
      const done = wake();
      // The call before is at it, and does not begin anew.
      let calls = 0;
      if (addon !== null) reader.wake(() => (calls += 1));
      await done;
      const turnsAtEnd = turns;
      clearImmediate(turn);
      work = 0;
      // Each read takes longer than a stretch: whatever else the server does has its turn behind it.
      if (addon !== null) expect(turnsAtEnd).toBeGreaterThanOrEqual(many.length - 1);
      // Node.js reads what it was handed back in a later turn.
      expect(many.every(({ bytes }) => bytes().toString() === 'firstlater')).toBe(addon !== null);
      for (const { bytes } of many) await expect.poll(() => bytes().toString()).toBe('firstlater');
      for (let n = 0; n < 2 * many.length; n += 1) await new Promise<void>((resolve) => setImmediate(resolve));
      expect(calls).toBe(0);
    });

    it.skipIf(addon === null)('goes on with the others when what takes the bytes of one throws', async () => {
      await listen();
      rest = Rest.LONG;
      const [broken, sound] = [await connect(), await connect()];
      const told = events(broken.socket);
      for (const { client, bytes } of [broken, sound]) {
        client.write('first');
        await expect.poll(() => bytes().toString()).toBe('first');
        await new Promise<void>((resolve) => client.write('later', () => resolve()));
      }
      broken.client.on('error', () => undefined);
      Object.defineProperty(broken.socket, 'isPaused', { value: () => assert.fail('a fault') });
      await wake();
      await wake();
      await expect.poll(() => sound.bytes().toString()).toBe('firstlater');
      await expect.poll(() => told).toContain('close');
    });

    it('sees ends and resets when it is woken', async () => {
      await listen();
      rest = Rest.LONG;
      const [ended, reset] = [await connect(), await connect()];
      const told = [events(ended.socket), events(reset.socket)];
      for (const { client, bytes } of [ended, reset]) {
        client.write('rest');
        await expect.poll(() => bytes().toString()).toBe('rest');
      }
      ended.client.end(' in peace');
      reset.client.resetAndDestroy();
      await others();
      expect(told).toEqual([[], []]);
      await wake();
      await expect.poll(() => told[1]).toEqual(['ECONNRESET', 'close']);
      await expect.poll(() => ended.bytes().toString()).toBe('rest in peace');
      await wake();
      await expect.poll(() => told[0]).toEqual(['end', 'close']);
    });

    it('reads on without a rest when it was roused, until it was woken twice', async () => {
      await listen();
      rest = Rest.LONG;
      const { client, socket, bytes } = await connect();
      const told = events(socket);
      const say = async (word: string): Promise<void> => {
        client.write(word);
        await expect.poll(() => bytes().toString()).toMatch(new RegExp(`${word}$`));
      };
      await say('one');
      reader.readNow();
      await say('two');
      await wake();
      await say('three');
      await wake();
      await say('four');
      client.write('five');
      await others();
      expect(bytes().toString()).toBe('onetwothreefour');
      reader.readNow();
      client.end();
      await expect.poll(() => told).toEqual(['end', 'close']);
      expect(bytes().toString()).toBe('onetwothreefourfive');
      await wake();
      await wake();
    });

    it('leaves a paused socket to who has paused it, and a destroyed one alone', async () => {
      await listen();
      rest = Rest.LONG;
      const [paused, destroyed] = [await connect(), await connect()];
      const told = events(destroyed.socket);
      for (const { client, bytes } of [paused, destroyed]) {
        client.write('first');
        await expect.poll(() => bytes().toString()).toBe('first');
        client.write(' second');
      }
      paused.socket.pause();
      destroyed.client.on('error', () => undefined);
      destroyed.socket.destroy();
      await wake();
      await others();
      expect([paused.bytes().toString(), destroyed.bytes().toString(), told]).toEqual(['first', 'first', ['close']]);
      paused.socket.resume();
      await expect.poll(() => paused.bytes().toString()).toBe('first second');
    });

    it('does not rest behind a large read, for more of it waits', async () => {
      await listen();
      rest = Rest.LONG;
      const { client, socket, reads } = await connect();
      socket.pause();
      client.write(Buffer.alloc(3_000_000));
      socket.resume();
      await expect.poll(() => reads.length).toBeGreaterThan(1);
      expect(reads[0]).toBeGreaterThan(48 * 1024);
    });

    it('goes on at once with who sends much', async () => {
      await listen();
      rest = Rest.LONG;
      const { client, bytes } = await connect();
      client.write(Buffer.alloc(3_000_000));
      // A small read may come first.
      const waking = setInterval(() => reader.wake(), 100);
      await expect.poll(() => bytes().length).toBe(3_000_000);
      clearInterval(waking);
    });
  });

  describe('told that what comes next can wait for a moment', () => {
    type Client = Awaited<ReturnType<typeof connect>>;

    /** Sweeps come when the test says so. */
    beforeEach(() => {
      reader = new SocketReader(addon);
      vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    });
    afterEach(() => {
      vi.useRealTimers();
    });
    const sweep = (): unknown => vi.advanceTimersByTime(10);

    /** `expect.poll` turns the clock that sweeps go by. */
    const seen = <T>(look: () => T, wanted: T) =>
      until(`${JSON.stringify(wanted)}`, () => isDeepStrictEqual(look(), wanted), { everyMs: 5 });

    async function heard({ client, bytes }: Client, word: string): Promise<void> {
      client.write(word);
      await until(`'${word}' is heard`, () => bytes().toString().endsWith(word), { everyMs: 5 });
    }

    /** So many connections that have said `first`, and been heard. */
    async function connected(count: number): Promise<Client[]> {
      await listen();
      rest = Rest.SHORT;
      const all: Client[] = [];
      for (let index = 0; index < count; index += 1) {
        const next = await connect();
        await heard(next, 'first');
        all.push(next);
      }
      // The first ones began before there were enough of them.
      for (const { client } of all) client.write('second');
      const done = (): boolean => all.every(({ bytes }) => bytes().toString() === 'firstsecond');
      await until('all are heard again', () => sweep() && done(), { everyMs: 5 });
      return all;
    }

    const five = (text: string): string[] => Array.from({ length: 5 }, () => text);
    const texts = (all: readonly Client[]): string[] => all.map(({ bytes }) => bytes().toString().replace('firstsecond', ''));

    it.skipIf(addon === null)('reads five and more in a sweep of their own, again and again, and none in between', async () => {
      const all = await connected(5);
      for (const round of [1, 2, 3]) {
        const before = texts(all);
        for (const { client } of all) client.write(`${round}`);
        await others();
        expect(texts(all)).toEqual(before);
        sweep();
        await seen(
          () => texts(all),
          before.map((text) => `${text}${round}`),
        );
        // Nothing has come: they are looked for again.
        sweep();
      }
    });

    it.each(addon === null ? [1, 5] : [1, 4])('reads %i as it comes', async (count) => {
      const all = await connected(count);
      for (const each of all) for (const word of ['a', 'b', 'c']) await heard(each, word);
      expect(vi.getTimerCount()).toBe(0);
    });

    it.skipIf(addon === null)('ends the rest of one at once, and leaves the others', async () => {
      const all = await connected(6);
      for (const { client } of all) client.write('later');
      await others();
      expect(texts(all)).toEqual(['', ...five('')]);
      rest = Rest.NONE;
      reader.endRest(all[0]!.socket);
      await seen(() => texts(all), ['later', ...five('')]);
      await heard(all[0]!, 'now');
      expect(texts(all)).toEqual(['laternow', ...five('')]);
      sweep();
      await seen(() => texts(all), ['laternow', ...five('later')]);
      // All are read as they come now, and there is nothing to sweep.
      expect(vi.getTimerCount()).toBe(0);
      for (const each of all) await heard(each, 'again');
    });

    it.skipIf(addon === null)('lets them rest until it is woken, and for a moment again, as what they bring can wait', async () => {
      const all = await connected(5);
      const say = (word: string): void => {
        for (const { client } of all) client.write(word);
      };
      rest = Rest.LONG;
      say('1');
      await others();
      sweep();
      await seen(() => texts(all), five('1'));
      expect(vi.getTimerCount()).toBe(0);
      say('2');
      await others();
      expect(texts(all)).toEqual(five('1'));
      rest = Rest.SHORT;
      reader.wake();
      await seen(() => texts(all), five('12'));
      // The first ones were read as they come while they were alone.
      say('3');
      await until('all are heard', () => sweep() && texts(all).every((text) => text === '123'), { everyMs: 5 });
      say('4');
      await others();
      expect(texts(all)).toEqual(five('123'));
      sweep();
      await seen(() => texts(all), five('1234'));
    });

    it.skipIf(addon === null)('stops looking for who has said nothing from one call to the next, and hears it all the same', async () => {
      const all = await connected(5);
      reader.wake();
      expect(vi.getTimerCount()).toBe(1);
      reader.wake();
      expect(vi.getTimerCount()).toBe(0);
      for (const each of all) await heard(each, 'back');
      for (const { client } of all) client.write('later');
      await others();
      expect(texts(all)).toEqual(five('back'));
      sweep();
      await seen(() => texts(all), five('backlater'));
    });

    it.skipIf(addon === null)('sees ends and resets in the sweep, and reads who is left as it comes', async () => {
      const all = await connected(5);
      const told = all.map(({ socket }) => events(socket));
      all[0]!.client.end('bye');
      all[1]!.client.resetAndDestroy();
      await others();
      expect(told.flat()).toEqual([]);
      const wanted = [['end', 'close'], ['ECONNRESET', 'close'], [], [], []];
      await until('the ends are told', () => sweep() && isDeepStrictEqual(told, wanted), { everyMs: 5 });
      expect(texts(all)).toEqual(['bye', '', '', '', '']);
      // Too few are left: they are read as they come from their next word on.
      const left = all.slice(2);
      for (const { client } of left) client.write('still');
      await until('they are heard', () => sweep() && texts(left).every((text) => text === 'still'), { everyMs: 5 });
      expect(vi.getTimerCount()).toBe(0);
      for (const each of left) await heard(each, 'here');
    });

    it.skipIf(addon === null)('sweeps no more when all have gone', async () => {
      const all = await connected(5);
      const told = all.map(({ socket }) => events(socket));
      expect(vi.getTimerCount()).toBe(1);
      for (const { socket } of all) socket.destroy();
      await seen(
        () => told,
        all.map(() => ['close']),
      );
      expect(vi.getTimerCount()).toBe(0);
    });

    it.skipIf(addon === null)(
      'leaves what is not needed yet to the next wake, asks once behind each read, and sweeps on from then',
      async () => {
        const all = await connected(5);
        slack = Number.POSITIVE_INFINITY;
        const say = (word: string): void => {
          for (const { client } of all) client.write(word);
        };
        // They were asked before.
        sweep();
        say('1');
        await others();
        sweep();
        await seen(() => texts(all), five('1'));
        asked = 0;
        say('2');
        await others();
        for (let n = 0; n < 3; n += 1) sweep();
        expect([texts(all), asked]).toEqual([five('1'), 5]);
        slack = 0;
        sweep();
        expect([texts(all), asked]).toEqual([five('1'), 5]);
        reader.wake();
        await seen(() => texts(all), five('12'));
        say('3');
        await others();
        expect(texts(all)).toEqual(five('12'));
        sweep();
        await seen(() => texts(all), five('123'));
      },
    );

    it.skipIf(addon === null)('sweeps what is needed later from then on', async () => {
      const all = await connected(5);
      slack = 60_000;
      const now = vi.spyOn(performance, 'now');
      const from = performance.now();
      now.mockImplementation(() => from);
      sweep();
      for (const { client } of all) client.write('1');
      await others();
      sweep();
      await seen(() => texts(all), five('1'));
      for (const { client } of all) client.write('2');
      await others();
      for (const passed of [0, 59_999]) {
        now.mockImplementation(() => from + passed);
        sweep();
        expect(texts(all)).toEqual(five('1'));
      }
      now.mockImplementation(() => from + 60_000);
      sweep();
      await seen(() => texts(all), five('12'));
      now.mockRestore();
    });

    it.skipIf(addon === null)('reads them at once when it was roused', async () => {
      const all = await connected(5);
      for (const { client } of all) client.write('later');
      await others();
      expect(texts(all)).toEqual(five(''));
      reader.readNow();
      await seen(() => texts(all), five('later'));
      reader.wake();
      reader.wake();
    });
  });

  it('keeps addresses, writes, and the end of the connection', async () => {
    await listen();
    const { client, socket } = await connect();
    expect([socket.remotePort, socket.localPort]).toEqual([client.localPort, client.remotePort]);
    const ended = once(socket, 'end');
    const echoed = once(client, 'data');
    socket.write('hello');
    expect(String((await echoed)[0])).toBe('hello');
    client.end();
    await ended;
  });

  it('tells of a reset, and the server forgets the socket', async () => {
    await listen();
    const { client, accepted, socket, bytes } = await connect();
    const told = events(socket);
    client.write('last words');
    await expect.poll(() => bytes().toString()).toBe('last words');
    client.resetAndDestroy();
    await expect.poll(() => told).toEqual(['ECONNRESET', 'close']);
    expect([socket.destroyed, accepted.destroyed]).toEqual([true, true]);
  });

  it('tells of the end of the connection only behind what waits while it is paused', async () => {
    await listen();
    const { client, socket, bytes } = await connect();
    const told = events(socket);
    client.write('first');
    await expect.poll(() => bytes().toString()).toBe('first');
    socket.pause();
    client.end(' last');
    // What another socket brings was sent later.
    const other = await connect();
    other.client.write('other');
    await expect.poll(() => other.bytes().toString()).toBe('other');
    expect([bytes().toString(), told]).toEqual(['first', []]);
    socket.resume();
    await expect.poll(() => told).toEqual(['end', 'close']);
    expect(bytes().toString()).toBe('first last');
  });

  it('lets a socket be destroyed from within the call, and reads no more of it', async () => {
    await listen();
    const taken = Promise.withResolvers<net.Socket>();
    let calls = 0;
    server.once('connection', (accepted: net.Socket) => {
      const socket = reader.adopt(accepted, () => {
        calls += 1;
        socket.destroy();
        return Rest.NONE;
      });
      taken.resolve(socket);
    });
    const client = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
    clients.push(client);
    // Data that nobody reads any more is answered by a reset.
    client.on('error', () => undefined);
    const socket = await taken.promise;
    const told = events(socket);
    client.write(Buffer.alloc(2_000_000));
    await expect.poll(() => client.destroyed).toBe(true);
    await expect.poll(() => told).toEqual(['close']);
    expect(calls).toBe(1);
    // Others that share its memory go on.
    const other = await connect();
    other.client.write('other');
    await expect.poll(() => other.bytes().toString()).toBe('other');
  });

  it('reads TLS in the way of Node.js, on the socket that was accepted', async () => {
    const tlsServer = tls.createServer(selfSigned('localhost')).listen(0, '127.0.0.1');
    server = tlsServer;
    await once(server, 'listening');
    const taken = Promise.withResolvers<{ accepted: net.Socket; socket: net.Socket }>();
    let received = '';
    tlsServer.once('secureConnection', (accepted) => {
      const socket = reader.adopt(accepted, (data, length) => {
        received += data.toString('latin1', 0, length);
        return Rest.LONG;
      });
      taken.resolve({ accepted, socket });
    });
    const client = tls.connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', rejectUnauthorized: false });
    clients.push(client);
    const { accepted, socket } = await taken.promise;
    expect(socket).toBe(accepted);
    const told = events(socket);
    client.write('over TLS');
    await expect.poll(() => received).toBe('over TLS');
    client.end();
    await expect.poll(() => told).toEqual(['end', 'close']);
  });

  it('lets the server count and close as usual', async () => {
    await listen();
    const count = (): Promise<number> =>
      new Promise((resolve, reject) => server.getConnections((error, open) => (error === null ? resolve(open) : reject(error))));
    const { accepted, socket } = await connect();
    const { client } = await connect();
    expect(await count()).toBe(2);
    socket.destroy();
    await expect.poll(count).toBe(1);
    expect(accepted.destroyed).toBe(true);
    const closed = once(server, 'close');
    server.close();
    client.destroy();
    await closed;
  });
});
