/** How metrics name streams and applications. */
import { labelText, type MetricsPage } from '../util/metrics.ts';
import { type ApplicationAddress, applicationKey, type StreamAddress, streamKey } from './stream-address.ts';

/** In place of the names of streams without their own labels. No stream name contains a blank. */
export const OTHERS = 'all others';
/** Label of all streams without labels of their own. */
export const OTHER_STREAMS = labelText({ vhost: '', app: '', stream: OTHERS });
/** Label of all applications without one. */
export const OTHER_APPLICATIONS = labelText({ vhost: '', app: OTHERS });

/** The labels of a stream in all metrics; null: there is no free slot. */
export function streamLabels(page: MetricsPage, address: StreamAddress): string | null {
  const { vhost, app, stream } = address;
  return page.streams.of(streamKey(address), () => labelText({ vhost, app, stream }));
}

/** As `streamLabels`, of an application. */
export function applicationLabels(page: MetricsPage, address: ApplicationAddress): string | null {
  const { vhost, app } = address;
  return page.applications.of(applicationKey(address), () => labelText({ vhost, app }));
}
