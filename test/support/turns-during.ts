/** Looks at work from other turns of the event loop. */
import { vi } from 'vitest';

/** Counts the turns in which other work could run while `work` runs. */
export async function turnsDuring<Result>(
  work: () => Promise<Result> | Result,
): Promise<{ readonly turns: number; readonly result: Result }> {
  let turns = 0;
  const result = await whileTurning(work, () => {
    turns += 1;
  });
  return { turns, result };
}

/** The most that `count` grew between two turns while `work` ran. Each look at the clock takes a millisecond, so that slices have few steps. */
export async function mostInATurn(count: () => number, work: () => Promise<unknown>): Promise<number> {
  let now = 0;
  const time = vi.spyOn(performance, 'now').mockImplementation(() => {
    now += 1;
    return now;
  });
  let [before, most] = [count(), 0];
  const look = (): void => {
    most = Math.max(most, count() - before);
    before = count();
  };
  try {
    await whileTurning(work, look);
  } finally {
    time.mockRestore();
  }
  look();
  return most;
}

/** `turned` is called in each turn of the event loop. */
export async function whileTurning<Result>(work: () => Promise<Result> | Result, turned: () => void): Promise<Result> {
  const turn = (): void => {
    turned();
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  try {
    return await work();
  } finally {
    clearImmediate(next);
  }
}
