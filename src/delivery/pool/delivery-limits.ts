import type { TimeoutScale } from '../../util/timeout-scale.ts';
import { DEFAULT_HTTP_LIMITS, scaledHttpLimits } from '../http-limits.ts';
import type { DeliveryLimits } from '../thread-protocol.ts';

/** Default limits of a delivery thread. */
export const DEFAULT_DELIVERY_LIMITS: DeliveryLimits = {
  http: DEFAULT_HTTP_LIMITS,
  waiting: 20_000,
  fileBytes: 256 * 1024 * 1024,
  hotBytes: 32 * 1024 * 1024,
  sessions: 100_000,
  sessionIdle: 30_000,
  sessionLifetime: 30 * 24 * 3600 * 1000,
  reportInterval: 500,
  stopGrace: 2_000,
  timeoutScale: 1,
};

/** The default limits with all times for clients scaled. */
export function scaledDeliveryLimits(timeoutScale: TimeoutScale): DeliveryLimits {
  return { ...DEFAULT_DELIVERY_LIMITS, http: scaledHttpLimits(DEFAULT_HTTP_LIMITS, timeoutScale), timeoutScale };
}
