/** A common factor on all timeouts for peers. */

/** Multiplies every timeout for a peer; 1 gives the documented times. Tests use less, to see every timeout expire on every port. */
export type TimeoutScale = number;

/** All `times` multiplied by `timeoutScale`. */
export function scaleTimeouts<T extends Readonly<Record<keyof T, number>>>(times: T, timeoutScale: TimeoutScale): T {
  return Object.fromEntries(Object.entries<number>(times).map(([name, time]) => [name, time * timeoutScale])) as unknown as T;
}
