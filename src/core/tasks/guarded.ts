/** Keeps what goes wrong in one task of a stream from the stream and its other tasks. */

/**
 * Calls `action`; what it throws ends what the task does, and nothing else. `value` is handed on, so that an action for every
 * packet is made once.
 */
export function guarded<Task extends { fail(error: unknown): void }, Value>(
  task: Task,
  value: Value,
  action: (task: Task, value: Value) => void,
): void {
  try {
    action(task, value);
  } catch (error) {
    task.fail(error);
  }
}
