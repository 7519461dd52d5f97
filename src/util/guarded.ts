/** Keeps faults of ours where they happen: whoever calls an event listener or a timer can do nothing about what it throws. */
import type { Logger } from './logger.ts';

/**
 * `action` for a timer, an event or a promise that nobody waits for: what it throws, or rejects with, is logged as that `what` failed,
 * and the next call is made as if nothing had been. Of faults that come again and again the 1st, 2nd, 4th, 8th … is logged.
 */
export function guarded<Arguments extends readonly unknown[]>(
  logger: Logger,
  what: string,
  action: (...given: Arguments) => void | Promise<void>,
): (...given: Arguments) => void {
  let faults = 0;
  const tell = (error: unknown): void => {
    faults += 1;
    if ((faults & (faults - 1)) === 0) logger.limited.error({ err: error, faults }, `${what} failed inside the server`);
  };
  return (...given) => {
    try {
      const running = action(...given);
      if (running instanceof Promise) running.catch(tell);
    } catch (error) {
      tell(error);
    }
  };
}

/**
 * Does `action` to each item; what one of them throws goes to `failed` with it, and the others have their turn. What `failed` throws comes
 * out behind the last of them.
 */
export function forEachGuarded<T>(items: Iterable<T>, action: (item: T) => void, failed: (item: T, error: unknown) => void): void {
  forEachGiven(items, undefined, action, failed);
}

/** The same for what every item is given, such as a packet: an action that takes it from here is made once, not for each packet. */
export function forEachGiven<T, Value>(
  items: Iterable<T>,
  value: Value,
  action: (item: T, value: Value) => void,
  failed: (item: T, error: unknown) => void,
): void {
  let fault: { readonly error: unknown } | null = null;
  for (const item of items) {
    try {
      action(item, value);
    } catch (error) {
      try {
        failed(item, error);
      } catch (again) {
        fault ??= { error: again };
      }
    }
  }
  if (fault !== null) throw fault.error;
}
