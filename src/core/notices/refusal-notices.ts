import type { IngestName, IngestRefused } from '../ingest.ts';
import { isAddressableName } from '../stream-address.ts';
import type { Notices } from './notice.ts';

/** Posts a refused publisher. `vhost`: the virtual host it reached, if any. Its stream name is included only if it is a valid name. */
export function postRefusedIngest(
  notices: Notices,
  { code: reason, message: detail }: IngestRefused,
  { vhost, app, request }: { readonly vhost: string | undefined; readonly app: string; readonly request: IngestName },
): void {
  const { streamName: stream, provider: protocol } = request;
  const place = { ...(vhost !== undefined && { vhost, app }), ...(isAddressableName(stream) && { stream, detail }) };
  notices.post({ type: 'refusal.counted', direction: 'incoming', protocol, reason, count: 1, ...place });
}
