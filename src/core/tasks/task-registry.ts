/**
 * The tasks of a publisher that follow streams (recordings, pushes): makes them, keeps their documents on disk, and waits for their end.
 */
import { randomBytes } from 'node:crypto';
import type { DocumentFolder } from '../../state/document-folder.ts';
import type { Logger } from '../../util/logger.ts';
import { type ApplicationAddress, applicationKey } from '../stream-address.ts';
import type { FollowingTask, TaskOrigin, TaskTotals } from './following-task.ts';
import type { TaskRequest } from './task-request.ts';

/** Tasks of one kind that an application may have through the API. */
export const MAX_TASKS = 1000;
const KEY_BYTES = 12;

/** Why a task cannot be started or stopped. */
export class TaskRefused extends Error {
  override readonly name = 'TaskRefused';
  readonly code: 'duplicate' | 'too-many' | 'not-durable';

  constructor(code: TaskRefused['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The particulars of one kind of task. */
export interface TaskRegistryOptions<Request extends TaskRequest, Task> {
  /** The kind of task in messages and in fields of the log: `recording`, `push`. */
  readonly noun: string;
  readonly documents: DocumentFolder;
  readonly logger: Logger;
  /** A request that the state folder holds, or null. */
  readonly parse: (value: unknown) => Request | null;
  readonly make: (origin: TaskOrigin<Request>) => Task;
  /** A new task has been added to the lists. */
  readonly onRegistered?: (task: Task) => void;
  /** A task has left the lists, and will be stopped. */
  readonly onDropped?: (task: Task) => void;
}

/** Owns its tasks from `register` or `load` on. Removed tasks end on their own; `settle` waits for them. */
export class TaskRegistry<Request extends TaskRequest, Task extends FollowingTask<Request>> {
  readonly #options: TaskRegistryOptions<Request, Task>;
  /** By virtual host and application, then by id. */
  readonly #tasks = new Map<string, Map<string, Task>>();
  /** Dropped tasks that have not ended yet. */
  readonly #ending = new Set<Promise<void>>();

  constructor(options: TaskRegistryOptions<Request, Task>) {
    this.#options = options;
  }

  /** Brings back the tasks of the last run. */
  async load(): Promise<void> {
    const { documents, noun, make } = this.#options;
    for (const { key, value } of await documents.load()) {
      const origin = this.#parse(key, value);
      if (origin === null) await documents.setAside(key, `it does not describe a ${noun}`);
      else this.#add(make(origin));
    }
  }

  /** Tasks of all applications. */
  *all(): Generator<Task, void> {
    for (const tasks of this.#tasks.values()) yield* tasks.values();
  }

  get isEmpty(): boolean {
    return this.all().next().done === true;
  }

  /** Tasks of an application. */
  of(owner: ApplicationAddress): Task[] {
    return [...(this.#tasks.get(applicationKey(owner))?.values() ?? [])];
  }

  /** Tasks in the byte order of their ids; with `id`, that one or none. */
  list(owner: ApplicationAddress, id: string | null): Task[] {
    if (id !== null) return [this.find(owner, id)].filter((task) => task !== null);
    return this.of(owner).sort((a, b) => Buffer.compare(Buffer.from(a.request.id), Buffer.from(b.request.id)));
  }

  /** Tasks that follow an outbound stream. */
  following(stream: ApplicationAddress & { readonly name: string }): Task[] {
    return this.of(stream).filter(({ request }) => request.streamName === stream.name);
  }

  find(owner: ApplicationAddress, id: string): Task | null {
    return this.#tasks.get(applicationKey(owner))?.get(id) ?? null;
  }

  /** The task whose document has this name. */
  byKey(key: string): Task | null {
    for (const tasks of this.#tasks.values()) for (const task of tasks.values()) if (task.key === key) return task;
    return null;
  }

  has(task: Task): boolean {
    return this.find(task, task.request.id) === task;
  }

  /** Makes a task; its id is taken from here on. Throws `TaskRefused`. */
  register({ vhost, app }: ApplicationAddress, request: Request, createdAt: number): Task {
    const { noun, make } = this.#options;
    const tasks = this.#tasks.get(applicationKey({ vhost, app }));
    // A map file makes a task for each stream and entry: the operator chose the number.
    const isFull = !request.isConfig && this.of({ vhost, app }).filter((task) => !task.request.isConfig).length >= MAX_TASKS;
    if (tasks?.has(request.id) === true) throw new TaskRefused('duplicate', `the application has a ${noun} '${request.id}'`);
    if (isFull) throw new TaskRefused('too-many', `the application has ${MAX_TASKS} tasks of the kind ${noun}`);
    const task = make({ key: randomBytes(KEY_BYTES).toString('hex'), vhost, app, request, createdAt });
    this.#add(task);
    this.#options.onRegistered?.(task);
    return task;
  }

  /** Resolves when the task survives a restart. Rejects with `TaskRefused`. */
  persist(task: Task): Promise<void> {
    return this.#durably(this.#options.documents.save(task.key, storedOf(task)));
  }

  /**
   * Removes a task from the lists and from disk; call `drop` next. Null when no task has this id. Rejects with `TaskRefused`; the task is
   * kept then.
   */
  async release(owner: ApplicationAddress, id: string): Promise<Task | null> {
    const task = this.find(owner, id);
    if (task === null) return null;
    // The task leaves the list first: a connection or file that ends now must not save its document again.
    this.#forget(task);
    try {
      if (!task.request.isConfig) await this.#durably(this.#options.documents.remove(task.key));
    } catch (error) {
      // If another task has taken the id meanwhile, this task ends although its document remains.
      if (this.find(task, id) !== null) this.drop(task);
      else this.#add(task);
      throw error;
    }
    return task;
  }

  /** Removes the task from the lists, if it is there, and lets it end. */
  drop(task: Task): void {
    this.#forget(task);
    this.#options.onDropped?.(task);
    const ending = task.stop();
    this.#ending.add(ending);
    void ending.finally(() => this.#ending.delete(ending));
  }

  /**
   * Saves the totals, so that they continue after a restart. Resolves with false when the disk refuses, which is logged. Never rejects.
   */
  async keepTotals(task: Task): Promise<boolean> {
    if (task.request.isConfig || !this.has(task)) return true;
    const { documents, logger, noun } = this.#options;
    try {
      await documents.save(task.key, storedOf(task));
      return true;
    } catch (error) {
      logger.warn({ err: error, [noun]: task.request.id }, `totals of the ${noun} could not be saved`);
      return false;
    }
  }

  /** The application is gone for good: its tasks are dropped. */
  forgetApplication(owner: ApplicationAddress): void {
    const { documents, logger, noun } = this.#options;
    for (const task of this.of(owner)) {
      this.drop(task);
      documents.remove(task.key).catch((error: unknown) => {
        logger.error({ err: error, [noun]: task.request.id }, `${noun} of a deleted application stays in the state folder`);
      });
    }
  }

  /** Resolves when all that has ended is finished and all totals are saved. */
  async settle(): Promise<void> {
    await Promise.all(this.#ending);
    for (const tasks of this.#tasks.values()) for (const task of tasks.values()) await task.settled();
    await this.#options.documents.settle();
  }

  #add(task: Task): void {
    const key = applicationKey(task);
    const tasks = this.#tasks.get(key) ?? new Map<string, Task>();
    tasks.set(task.request.id, task);
    this.#tasks.set(key, tasks);
  }

  #forget(task: Task): void {
    const key = applicationKey(task);
    const tasks = this.#tasks.get(key);
    if (tasks?.get(task.request.id) !== task) return;
    tasks.delete(task.request.id);
    if (tasks.size === 0) this.#tasks.delete(key);
  }

  async #durably(write: Promise<void>): Promise<void> {
    try {
      await write;
    } catch (error) {
      throw new TaskRefused('not-durable', `the ${this.#options.noun} could not be saved`, { cause: error });
    }
  }

  #parse(key: string, value: unknown): TaskOrigin<Request> | null {
    if (typeof value !== 'object' || value === null) return null;
    const { vhost, app, request, createdAt, totals } = value as Record<string, unknown>;
    const parsed = this.#options.parse(request);
    if (typeof vhost !== 'string' || typeof app !== 'string' || parsed === null || typeof createdAt !== 'number') return null;
    return { key, vhost, app, request: parsed, createdAt, ...(isTotals(totals) && { totals }) };
  }
}

/** A task's document in the state folder. */
function storedOf<Request extends TaskRequest>({ vhost, app, request, createdAt, totals }: FollowingTask<Request>): object {
  return { vhost, app, request, createdAt, totals };
}

function isTotals(value: unknown): value is TaskTotals {
  if (typeof value !== 'object' || value === null) return false;
  const { sequence, bytes, time, counted = [] } = value as Record<string, unknown>;
  if (!Array.isArray(counted) || !counted.every((key) => typeof key === 'string')) return false;
  return [sequence, bytes, time].every((figure) => typeof figure === 'number' && Number.isFinite(figure) && figure >= 0);
}
