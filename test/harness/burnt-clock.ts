/**
 * The wall clock as black and white cells in the top row of the frame: cell k is white when bit k of the number of 10 ms ticks is set. It
 * survives encoding and is read from the pixels of a player, which gives the true delay from encoder to screen.
 */

export const CLOCK_BITS = 16;
/** Edge of one cell, pixels. */
export const CLOCK_CELL = 16;
export const CLOCK_TICK_MS = 10;

/** Milliseconds after which the burnt-in clock starts again from zero. */
export const CLOCK_WRAP_MS = 2 ** CLOCK_BITS * CLOCK_TICK_MS;

/** ffmpeg filter that draws the time at which the frame is filtered. */
export function clockFilter(): string {
  const size = `w=${CLOCK_CELL}:h=${CLOCK_CELL}:t=fill`;
  const base = `drawbox=x=0:y=0:w=${CLOCK_BITS * CLOCK_CELL}:h=${CLOCK_CELL}:t=fill:color=black`;
  const ticksPerSecond = 1000 / CLOCK_TICK_MS;
  const cells = Array.from({ length: CLOCK_BITS }, (_unused, bit) => {
    const set = `mod(floor(time(0)*${ticksPerSecond}/${2 ** bit}),2)`;
    return `drawbox=x=${bit * CLOCK_CELL}:y=0:${size}:color=white:enable='${set}'`;
  });
  return [base, ...cells].join(',');
}

/** Delay of a frame that shows `ticks` and was examined at `seenAt` (ms since the epoch). */
export function clockDelay(ticks: number, seenAt: number): number {
  const delay = (seenAt % CLOCK_WRAP_MS) - ticks * CLOCK_TICK_MS;
  return ((delay % CLOCK_WRAP_MS) + CLOCK_WRAP_MS) % CLOCK_WRAP_MS;
}
