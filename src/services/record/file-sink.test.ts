import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { FileSink } from './file-sink.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-sink-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function make(name: string, more: { limit?: number; prepare?: () => Promise<void> } = {}): { sink: FileSink; errors: Error[] } {
  const errors: Error[] = [];
  return { sink: new FileSink({ path: join(folder, name), onError: (error) => errors.push(error), ...more }), errors };
}

/** The common part of all file handles. */
async function fileHandles(): Promise<FileHandle> {
  const probe = await open(join(folder, 'probe'), 'w');
  await probe.close();
  return Object.getPrototypeOf(probe) as FileHandle;
}

describe('FileSink', () => {
  it('writes everything in order, thousands of small buffers too', async () => {
    const { sink, errors } = make('many');
    const expected: Buffer[] = [];
    for (let index = 0; index < 5000; index += 1) {
      const chunk = Buffer.from(`${index},`);
      expected.push(chunk);
      sink.write([Buffer.alloc(0), chunk]);
    }
    await sink.close();
    expect(errors).toEqual([]);
    expect(readFileSync(sink.path)).toEqual(Buffer.concat(expected));
    expect(sink.bytes).toBe(Buffer.concat(expected).length);
  });

  it('copies the first buffer of a call, which the caller reuses, and keeps the others', async () => {
    const { sink } = make('reused');
    const header = Buffer.from('head');
    sink.write([header, Buffer.from('body')]);
    header.fill(0x78);
    await sink.close();
    expect(readFileSync(sink.path, 'utf8')).toBe('headbody');
  });

  it('is full until the disk has caught up', async () => {
    const gate = Promise.withResolvers<void>();
    const { sink } = make('full', { limit: 10, prepare: () => gate.promise });
    sink.write([Buffer.alloc(9)]);
    expect(sink.full).toBe(false);
    sink.write([Buffer.alloc(1)]);
    expect(sink.full).toBe(true);
    gate.resolve();
    await sink.close();
    expect(sink.full).toBe(false);
    expect(readFileSync(sink.path)).toHaveLength(10);
  });

  it('counts data that is written to it while the disk is busy', async () => {
    const handles = await fileHandles();
    const began = Promise.withResolvers<void>();
    const first = Promise.withResolvers<void>();
    const second = Promise.withResolvers<void>();
    const gates = [first.promise, second.promise];
    const { writev } = handles;
    const spy = vi.spyOn(handles, 'writev').mockImplementation(async function (this: FileHandle, buffers) {
      began.resolve();
      await gates.shift();
      return writev.call(this, buffers);
    });
    const { sink } = make('meanwhile', { limit: 10 });
    sink.write([Buffer.alloc(6)]);
    await began.promise;
    sink.write([Buffer.alloc(10)]);
    first.resolve();
    await expect.poll(() => spy.mock.calls).toHaveLength(2);
    expect(sink.full).toBe(true);
    second.resolve();
    await sink.close();
    spy.mockRestore();
    expect(sink.full).toBe(false);
    expect(readFileSync(sink.path)).toHaveLength(16);
  });

  it('truncates a partial write on a full disk, and keeps earlier writes', async () => {
    const handles = await fileHandles();
    const { writev } = handles;
    let room = 25;
    const spy = vi.spyOn(handles, 'writev').mockImplementation(async function (this: FileHandle, buffers) {
      const bytes = Buffer.concat(buffers as readonly Uint8Array[]).subarray(0, room);
      if (bytes.length === 0) throw Object.assign(new Error('no room'), { code: 'ENOSPC' });
      room -= bytes.length;
      return writev.call(this, [bytes]);
    });
    const { sink, errors } = make('cut');
    // Three calls in one write of the system, which ends within the third.
    for (const letter of ['a', 'b', 'c']) sink.write([Buffer.from(letter.repeat(4)), Buffer.from(letter.repeat(6))]);
    await expect.poll(() => errors).toHaveLength(1);
    await sink.close();
    spy.mockRestore();
    expect(readFileSync(sink.path, 'utf8')).toBe(`${'a'.repeat(10)}${'b'.repeat(10)}`);
    expect(errors).toMatchObject([{ code: 'ENOSPC' }]);
  });

  it('reports an error once, takes no further data and never replaces a file', async () => {
    writeFileSync(join(folder, 'taken'), 'precious');
    const { sink, errors } = make('taken');
    sink.write([Buffer.from('x')]);
    await sink.close();
    await sink.close();
    expect(errors.map((error) => (error as NodeJS.ErrnoException).code)).toEqual(['EEXIST']);
    expect(readFileSync(join(folder, 'taken'), 'utf8')).toBe('precious');
    const missing = make('no/such/folder');
    await missing.sink.close();
    expect(missing.sink.error).toMatchObject({ code: 'ENOENT' });
    expect(missing.errors).toHaveLength(1);
  });

  it('does not follow a link at its path', async () => {
    symlinkSync('/dev/null', join(folder, 'link'));
    const { sink, errors } = make('link');
    sink.write([Buffer.alloc(100)]);
    await sink.close();
    expect(errors).toMatchObject([{ code: 'EEXIST' }]);
  });
});
