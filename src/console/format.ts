/** Figures in readable form. */

const STEPS = ['', 'k', 'M', 'G', 'T'];

/** Bits per second, with the unit. */
export function formatBitrate(bitsPerSecond: number): string {
  return `${scaled(bitsPerSecond, 1000)}bit/s`;
}

/** Bytes, with the unit. */
export function bytes(count: number): string {
  return `${scaled(count, 1000)}B`;
}

/** Milliseconds in their two largest non-zero units. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Local time of the viewer. */
export function timeOfDay(ms: number): string {
  return new Date(ms).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' });
}

/** `1 stream`, `2 streams`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** One decimal below 100, none above. */
export function short(value: number): string {
  return Math.abs(value) >= 100 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(1);
}

function scaled(value: number, base: number): string {
  let step = 0;
  let rest = value;
  while (Math.abs(rest) >= base && step < STEPS.length - 1) {
    rest /= base;
    step += 1;
  }
  return `${short(rest)} ${STEPS[step]}`;
}
