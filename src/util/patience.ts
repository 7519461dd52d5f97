/** How long the server waits for peers, as a whole. */

/**
 * A factor on every deadline for a peer: 1 is what the documentation says. Tests take less, because what ends after a minute must be
 * seen to end, on every port.
 */
export type Patience = number;

/** All `times` with patience. */
export function withPatience<T extends Readonly<Record<keyof T, number>>>(times: T, patience: Patience): T {
  return Object.fromEntries(Object.entries<number>(times).map(([name, time]) => [name, time * patience])) as unknown as T;
}
