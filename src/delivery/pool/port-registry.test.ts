import { beforeEach, describe, expect, test } from 'vitest';
import type { ActivationPort } from './activation-port.ts';
import { PortRegistry } from './port-registry.ts';

describe('port book', () => {
  let threads: number[];
  let asked: string[];
  let failures: string[];
  let registry: PortRegistry;

  beforeEach(() => {
    threads = [1, 2];
    asked = [];
    failures = [];
    registry = new PortRegistry({
      threads: () => threads,
      post: (thread, message) => {
        if (message.type !== 'listen') return;
        const { request, first, held } = message;
        asked.push(`${thread}:${request.port}${held === undefined ? '' : ` door ${held}`}`);
        if (held !== undefined) expect(first).toBe(false);
      },
      onFailed: (thread, port, message) => failures.push(`${thread}:${port} ${message}`),
    });
  });

  const open = (port: number) => registry.open({ host: '127.0.0.1', port, tls: false });

  test('the first thread finds the port, the others open the same one', async () => {
    const { id, opened } = open(0);
    expect(asked).toEqual(['1:0']);
    registry.listening(1, id, 5555);
    expect(asked).toEqual(['1:0', '2:5555']);
    registry.listening(2, id, 5555);
    expect(await opened).toBe(5555);
    registry.threadGone(2);
    threads = [1, 3];
    registry.threadStarted(3);
    expect(asked).toEqual(['1:0', '2:5555', '3:5555']);
  });

  test('a port that the first thread cannot open is refused', async () => {
    const { id, opened } = open(80);
    registry.failed(1, id, 'EACCES');
    await expect(opened).rejects.toThrow('EACCES');
    registry.threadStarted(3);
    expect(asked).toEqual(['1:80']);
  });

  test('a failure in a later thread is reported without closing the port', async () => {
    const { id, opened } = open(80);
    registry.listening(1, id, 80);
    registry.failed(2, id, 'EMFILE');
    expect(await opened).toBe(80);
    expect(failures).toEqual(['2:80 EMFILE']);
  });

  test('when the first thread dies before its answer, the next thread is asked', async () => {
    const { id, opened } = open(0);
    threads = [2];
    registry.threadGone(1);
    expect(asked).toEqual(['1:0', '2:0']);
    registry.listening(2, id, 6666);
    expect(await opened).toBe(6666);
  });

  test('a port opened before any thread runs waits for one', async () => {
    threads = [];
    const { id, opened } = open(0);
    expect(asked).toEqual([]);
    threads = [1];
    registry.threadStarted(1);
    registry.listening(1, id, 7777);
    expect(await opened).toBe(7777);
    expect(registry.close(id)).toBe(true);
    expect(registry.close(id)).toBe(false);
  });

  describe('with a door', () => {
    let closed = 0;
    const held = { port: 8080, descriptor: 17, close: () => (closed += 1) } as unknown as ActivationPort;

    beforeEach(() => {
      closed = 0;
      threads = [];
    });

    test('the first thread takes its socket over, the others open the port', async () => {
      const { id, opened } = registry.open({ host: '127.0.0.1', port: 0, tls: false }, held);
      expect(await opened).toBe(8080);
      threads = [1];
      registry.threadStarted(1);
      threads = [1, 2];
      registry.threadStarted(2);
      expect(asked).toEqual(['1:8080 door 17', '2:8080']);
      registry.listening(2, id, 8080);
      expect(closed).toBe(0);
      registry.listening(1, id, 8080);
      expect(closed).toBe(1);
      threads = [2, 3];
      registry.threadGone(1);
      registry.threadStarted(3);
      expect(asked.at(-1)).toBe('3:8080');
    });

    test('a thread that dies before it has the door leaves it to the next', async () => {
      const { id } = registry.open({ host: '127.0.0.1', port: 0, tls: false }, held);
      threads = [1];
      registry.threadStarted(1);
      threads = [];
      registry.threadGone(1);
      expect(closed).toBe(0);
      threads = [2];
      registry.threadStarted(2);
      expect(asked).toEqual(['1:8080 door 17', '2:8080 door 17']);
      registry.listening(2, id, 8080);
      expect(closed).toBe(1);
    });

    test('closes a socket that cannot be taken over', async () => {
      const { id } = registry.open({ host: '127.0.0.1', port: 0, tls: false }, held);
      threads = [1];
      registry.threadStarted(1);
      registry.failed(1, id, 'EMFILE');
      expect([closed, failures]).toEqual([1, ['1:8080 EMFILE']]);
    });

    test('is closed with the port, and with the book', () => {
      const { id } = registry.open({ host: '127.0.0.1', port: 0, tls: false }, held);
      registry.stop();
      expect(closed).toBe(1);
      registry.close(id);
      expect(closed).toBe(2);
    });
  });
});
