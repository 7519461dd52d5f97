/** EXT-X-SERVER-CONTROL (rfc8216bis §4.4.3.8). */
import { seconds } from './attribute-list.ts';

const TAG = '#EXT-X-SERVER-CONTROL';

/** Delivery directives a server supports; times in seconds, null when not announced. */
export interface ServerControl {
  readonly canBlockReload: boolean;
  readonly canSkipUntil: number | null;
  readonly holdBack: number | null;
  readonly partHoldBack: number | null;
}

/** The whole line, with the attributes that are set; seconds where they are times. */
export function serializeServerControl(control: ServerControl): string {
  const attributes: string[] = [];
  if (control.canBlockReload) attributes.push('CAN-BLOCK-RELOAD=YES');
  if (control.canSkipUntil !== null) attributes.push(`CAN-SKIP-UNTIL=${seconds(control.canSkipUntil)}`);
  if (control.holdBack !== null) attributes.push(`HOLD-BACK=${seconds(control.holdBack)}`);
  if (control.partHoldBack !== null) attributes.push(`PART-HOLD-BACK=${seconds(control.partHoldBack)}`);
  return `${TAG}:${attributes.join(',')}\n`;
}
