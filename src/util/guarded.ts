/** Contains internal errors: the caller of an event listener or a timer cannot handle an exception. */
import type { Logger } from './logger.ts';

/**
 * Wraps `action` for a timer, an event or a promise that is not awaited: exceptions and rejections are logged as a failure of `what`, and
 * the next call runs normally. Of repeated failures the 1st, 2nd, 4th, 8th … are logged.
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
 * Applies `action` to each item; an exception goes to `failed` with its item, and the others continue. The first exception of `failed` is
 * thrown at the end.
 */
export function forEachGuarded<T>(items: Iterable<T>, action: (item: T) => void, failed: (item: T, error: unknown) => void): void {
  forEachGiven(items, undefined, action, failed);
}

/** As `forEachGuarded`, with a value for all items, such as a packet, so that one `action` serves all packets without a closure. */
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
