import type { IngestName, IngestRefused } from '../ingest.ts';
import { isAddressableName } from '../stream-address.ts';
import type { Notices } from './notice.ts';

/** Tells of a publisher who has no place. `vhost`: the one that it came to, if any. What it calls its stream is told only where it is a name. */
export function postRefusedIngest(
  notices: Notices,
  { code: reason, message: detail }: IngestRefused,
  { vhost, app, request }: { readonly vhost: string | undefined; readonly app: string; readonly request: IngestName },
): void {
  const { streamName: stream, provider: protocol } = request;
  const place = { ...(vhost !== undefined && { vhost, app }), ...(isAddressableName(stream) && { stream, detail }) };
  notices.post({ type: 'refusal.counted', direction: 'incoming', protocol, reason, count: 1, ...place });
}
