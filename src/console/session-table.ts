/** Viewers of a stream, each with a button to disconnect it. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { type LiveEvent, protocolName, VIEWER_KINDS } from '../client/index.ts';
import { Action } from './action.ts';
import type { Context } from './context.ts';
import { bytes, counted, duration, formatBitrate, timeOfDay } from './format.ts';
import { html, type View } from './html.ts';
import { of, STREAM, type StreamName } from './stream-list.ts';
import { useLive } from './use-live.ts';

const PAGE_SIZE = 20;

/** The displayed statistics of a session. */
export interface SessionStatistics {
  /** bit/s. */
  readonly avgThroughputOut: number;
  readonly createdTime: string;
  readonly totalBytesOut: number;
}

interface Viewer {
  readonly session: string;
  readonly protocol: string;
  readonly client?: string;
  readonly statistics: SessionStatistics;
}

interface Page {
  readonly sessions: readonly Viewer[];
  readonly total: number;
}

const NOBODY: Page = { sessions: [], total: 0 };

/** The newest sessions, one page; a stream may have thousands. */
export function SessionTable({ context, name }: { readonly context: Context; readonly name: StreamName }): View {
  const { client, updates } = context;
  const [wanted, setPage] = useState(0);
  const key = `${name.vhost}/${name.app}/${name.stream}`;
  const list = useLive(updates, `sessions ${key} ${wanted}`, () => {
    const query = { protocol: VIEWER_KINDS.join(','), offset: `${wanted * PAGE_SIZE}`, limit: `${PAGE_SIZE}` };
    return client.get('/v2/vhosts/{vhost}/apps/{app}/streams/{stream}/sessions', { ...of(name), query });
  });
  // While a page loads, the previous one stays visible.
  const shown = useRef<Page>(NOBODY);
  if (list.data !== null) shown.current = list.data;
  const { sessions, total } = shown.current;
  const pages = Math.max(1, Math.ceil(total / PAGE_SIZE));
  const page = Math.min(wanted, pages - 1);
  useEffect(() => setPage(page), [page]);
  const gone = context.sampler.ended.filter(({ vhost, app, stream }) => vhost === name.vhost && app === name.app && stream === name.stream);
  return html`<section>
    <div class="bar"><h2 id="sessions-title">Viewers</h2><span class="quiet">${counted(total, 'session')}</span></div>
    ${
      total === 0
        ? html`<p class="quiet">No viewers.</p>`
        : html`<div class="scroll" tabindex="0" role="region" aria-labelledby="sessions-title"><table>
        <thead><tr><th scope="col">Session</th><th scope="col">Protocol</th><th scope="col">Client</th><th scope="col" class="number">Since</th><th scope="col" class="number">Now</th><th scope="col" class="number">Sent</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
        <tbody>${sessions.map(
          (viewer) => html`<${Row} key=${viewer.session} viewer=${viewer}
          kick=${() => client.delete(`${STREAM}/sessions/{session}`, { path: { ...name, session: viewer.session }, query: { protocol: 'all' } })} onDone=${list.refresh} />`,
        )}</tbody>
      </table></div>`
    }
    ${
      pages === 1
        ? null
        : html`<nav class="pager" aria-label="Pages of sessions">
      <button type="button" disabled=${page === 0} onClick=${() => setPage(page - 1)}>Previous</button>
      <span role="status">Page ${page + 1} of ${pages}</span>
      <button type="button" disabled=${page >= pages - 1} onClick=${() => setPage(page + 1)}>Next</button>
    </nav>`
    }
    ${gone.length === 0 ? null : html`<details><summary>${counted(gone.length, 'session')} ended, with the reason</summary><ul class="gone">${gone.slice(0, PAGE_SIZE).map((event) => html`<${Gone} key=${`${event.time} ${event.session}`} event=${event} />`)}</ul></details>`}
  </section>`;
}

function Gone({ event: { time, session, publisher, reason, detail, seconds = 0, bytes: sent = 0 } }: { readonly event: LiveEvent }): View {
  return html`<li><time>${time === undefined ? '' : timeOfDay(Date.parse(time))}</time> ${protocolName(publisher ?? '')} <code>${session}</code>: ${detail ?? reason}, after ${duration(seconds * 1000)} and ${bytes(sent)}</li>`;
}

interface RowOptions {
  readonly viewer: Viewer;
  readonly kick: () => Promise<unknown>;
  readonly onDone: () => void;
}

function Row({ viewer: { session, protocol, client, statistics }, kick, onDone }: RowOptions): View {
  return html`<tr>
    <th scope="row"><code>${session}</code></th>
    <td data-label="Protocol">${protocolName(protocol)}</td>
    <td data-label="Client">${client ?? '–'}</td>
    <td class="number" data-label="Since">${duration(Date.now() - Date.parse(statistics.createdTime))}</td>
    <td class="number" data-label="Now">${formatBitrate(statistics.avgThroughputOut)}</td>
    <td class="number" data-label="Sent">${bytes(statistics.totalBytesOut)}</td>
    <td class="number last"><${Action} label="Kick" about=${session} isDanger run=${kick} onDone=${onDone} /></td>
  </tr>`;
}
