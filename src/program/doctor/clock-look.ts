/** Whether the clock can be right. */
import type { Clock } from '../../util/clock.ts';
import { type Diagnosis, diagnosesOf } from './diagnosis.ts';

/** Earlier than any release of this program. */
const FIRST = Date.UTC(2026, 0, 1);
const LAST = Date.UTC(2100, 0, 1);
const LOOK_MS = 300;
/** Maximum deviation of a clock that is being corrected, within `LOOK_MS`. */
const STEP_MS = 25;
const READINGS = 5;
/** systemd-timesyncd creates the folder, and the file after it has reached a server. */
const TIMESYNC = '/run/systemd/timesync';
const DAEMONS: readonly (readonly [name: string, file: string])[] = [
  ['chrony', '/run/chrony/chronyd.pid'],
  ['ntpd', '/run/ntpd.pid'],
  ['ntpd', '/run/ntpd/ntpd.pid'],
  ['ptp4l', '/run/ptp4l'],
];

/** Asks no other machine. `wait` waits, and `isThere` tests whether a file exists. */
export async function clockLook(
  clock: Clock,
  { wait, isThere }: { readonly wait: (ms: number) => Promise<void>; readonly isThere: (path: string) => boolean },
): Promise<Diagnosis> {
  const { ok, warning, problem } = diagnosesOf('clock');
  const now = clock.now();
  const time = new Date(now).toISOString();
  const keep = 'run systemd-timesyncd or chrony; a container uses the clock of its host';
  if (now < FIRST || now > LAST) return problem(`the clock is at ${time}: certificates, signed URLs and schedules do not work`, keep);
  const before = apart(clock);
  await wait(LOOK_MS);
  const moved = Math.abs(apart(clock) - before);
  if (moved > STEP_MS) return warning(`the clock was changed by ${Math.round(moved)} ms during the check`, keep);
  if (isThere(`${TIMESYNC}/synchronized`)) return ok(`${time}, synchronized by systemd-timesyncd`);
  const daemon = DAEMONS.find(([, file]) => isThere(file))?.[0];
  if (daemon !== undefined) return ok(`${time}; ${daemon} runs`);
  if (isThere(TIMESYNC)) return warning(`${time}; systemd-timesyncd runs, but has not reached a time server yet`, keep);
  return ok(`${time}; whether it is synchronized cannot be checked from here`);
}

/**
 * Difference of wall clock and monotonic clock, ms: that of the fastest of several readings, because the process may be interrupted within
 * one.
 */
function apart(clock: Clock): number {
  let best = { took: Number.POSITIVE_INFINITY, apart: 0 };
  for (let n = 0; n < READINGS; n += 1) {
    const start = clock.monotonic();
    const wall = clock.now();
    const took = clock.monotonic() - start;
    if (took < best.took) best = { took, apart: wall - start - took / 2 };
  }
  return best.apart;
}
