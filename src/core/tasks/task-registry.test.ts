import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { DocumentFolder } from '../../state/document-folder.ts';
import { KEYED } from '../../state/document-layout.ts';
import { FollowingTask, NO_TOTALS } from './following-task.ts';
import { MAX_TASKS, TaskRegistry } from './task-registry.ts';
import type { TaskRequest } from './task-request.ts';

const OWNER = { vhost: 'v', app: 'a' };

class Task extends FollowingTask<TaskRequest> {
  override readonly totals = NO_TOTALS;
  stopped = false;

  override async stop(): Promise<void> {
    this.stopped = true;
  }

  override async settled(): Promise<void> {}
}

/** A disk that refuses when the test wants it to. */
class Documents extends DocumentFolder {
  readonly refusal = Promise.withResolvers<void>();

  override remove(): Promise<void> {
    return this.refusal.promise;
  }
}

let folder: string;
let documents: Documents;
let tasks: TaskRegistry<TaskRequest, Task>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-tasks-'));
  const logger = new RecordingLogger();
  documents = new Documents({ folder, kind: 'task', layout: KEYED, logger });
  tasks = new TaskRegistry({ noun: 'task', documents, logger, parse: () => null, make: (origin) => new Task(origin) });
  await tasks.load();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const request: TaskRequest = { id: 'x', streamName: 's', trackIds: [], variantNames: [], isConfig: false };

test('a task that the disk fails to remove stays', async () => {
  const task = tasks.register(OWNER, request, 1);
  const released = tasks.release(OWNER, 'x');
  documents.refusal.reject(new Error('no'));
  await expect(released).rejects.toMatchObject({ code: 'not-durable' });
  expect([tasks.find(OWNER, 'x'), task.stopped]).toEqual([task, false]);
});

test('a task that the disk fails to remove never replaces a new one', async () => {
  const old = tasks.register(OWNER, request, 1);
  const released = tasks.release(OWNER, 'x');
  const young = tasks.register(OWNER, request, 2);
  documents.refusal.reject(new Error('no'));
  await expect(released).rejects.toMatchObject({ code: 'not-durable' });
  expect(tasks.of(OWNER)).toEqual([young]);
  expect([old.stopped, young.stopped]).toEqual([true, false]);
});

test('tasks of a map file do not count towards the limit of the API', () => {
  for (let index = 0; index < MAX_TASKS; index += 1) tasks.register(OWNER, { ...request, id: `map${index}`, isConfig: true }, 1);
  for (let index = 0; index < MAX_TASKS; index += 1) tasks.register(OWNER, { ...request, id: `api${index}` }, 1);
  expect(() => tasks.register(OWNER, request, 1)).toThrow(expect.objectContaining({ code: 'too-many' }));
  expect(tasks.register(OWNER, { ...request, isConfig: true }, 1).request.id).toBe('x');
});
