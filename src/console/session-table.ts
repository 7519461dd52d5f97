/** Viewers of a stream, with a button that disconnects each. */
import { useState } from 'preact/hooks';
import type { LiveEvent } from '../client/index.ts';
import { Action } from './action.ts';
import type { Context } from './context.ts';
import { bitrate, bytes, counted, duration, timeOfDay } from './format.ts';
import { html, type View } from './html.ts';
import { VIEWER_PROTOCOLS } from './server-facts.ts';
import { inTurns, of, STATISTICS, STREAM, type StreamName } from './stream-list.ts';
import { useLive } from './use-live.ts';

const SHOWN = 20;
const BITS = 8;

/** Statistics of a session, as far as they are on show. */
export interface SessionStatistics {
  readonly createdTime: string;
  readonly lastThroughputOut: number;
  readonly totalBytesOut: number;
}

interface Session {
  readonly id: string;
  readonly kind: string;
}

/** The newest page of them; a stream may have thousands. */
export function SessionTable({ context, name }: { readonly context: Context; readonly name: StreamName }): View {
  const { client, updates } = context;
  const [wanted, setPage] = useState(0);
  const key = `${name.vhost}/${name.app}/${name.stream}`;
  const list = useLive(
    updates,
    `sessions ${key}`,
    async () => {
      const kinds = Object.keys(VIEWER_PROTOCOLS);
      const ids = await Promise.all(kinds.map((kind) => client.get(`${STREAM}/sessions`, { ...of(name), query: { protocol: kind } })));
      return ids.flatMap((each, n) => each.map((id): Session => ({ id, kind: kinds[n] ?? '' })));
    },
    'names',
  );
  const all = list.data ?? [];
  const pages = Math.max(1, Math.ceil(all.length / SHOWN));
  const page = Math.min(wanted, pages - 1);
  const shown = all.slice(page * SHOWN, (page + 1) * SHOWN);
  const figures = useLive(updates, `figures ${key} ${shown.map(({ id }) => id).join(' ')}`, async () => {
    const found = await inTurns(shown, ({ id }) =>
      client.get(`${STATISTICS}/sessions/{session}`, { path: { ...name, session: id }, query: { protocol: 'all' } }).catch(() => null),
    );
    return new Map(shown.map(({ id }, n) => [id, found[n] ?? null]));
  });
  const gone = context.sampler.ended.filter(({ vhost, app, stream }) => vhost === name.vhost && app === name.app && stream === name.stream);
  return html`<section>
    <div class="bar"><h2 id="sessions-title">Viewers</h2><span class="quiet">${counted(all.length, 'session')}</span></div>
    ${
      all.length === 0
        ? html`<p class="quiet">Nobody watches.</p>`
        : html`<div class="scroll" tabindex="0" role="region" aria-labelledby="sessions-title"><table>
        <thead><tr><th scope="col">Session</th><th scope="col">Protocol</th><th scope="col" class="number">Since</th><th scope="col" class="number">Now</th><th scope="col" class="number">Sent</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
        <tbody>${shown.map(
          (session) => html`<${Row} key=${session.id} session=${session} statistics=${figures.data?.get(session.id) ?? null}
          kick=${() => client.delete(`${STREAM}/sessions/{session}`, { path: { ...name, session: session.id }, query: { protocol: 'all' } })} onDone=${list.refresh} />`,
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
    ${gone.length === 0 ? null : html`<details><summary>${counted(gone.length, 'session')} ended, with the reason</summary><ul class="gone">${gone.slice(0, SHOWN).map((event) => html`<${Gone} key=${`${event.time} ${event.session}`} event=${event} />`)}</ul></details>`}
  </section>`;
}

function Gone({ event: { time, session, publisher, reason, detail, seconds = 0, bytes: sent = 0 } }: { readonly event: LiveEvent }): View {
  const kind = VIEWER_PROTOCOLS[publisher as keyof typeof VIEWER_PROTOCOLS] ?? publisher;
  return html`<li><time>${time === undefined ? '' : timeOfDay(Date.parse(time))}</time> ${kind} <code>${session}</code>: ${detail ?? reason}, after ${duration(seconds * 1000)} and ${bytes(sent)}</li>`;
}

interface RowOptions {
  readonly session: Session;
  readonly statistics: SessionStatistics | null;
  readonly kick: () => Promise<unknown>;
  readonly onDone: () => void;
}

function Row({ session: { id, kind }, statistics, kick, onDone }: RowOptions): View {
  return html`<tr>
    <th scope="row"><code>${id}</code></th>
    <td>${VIEWER_PROTOCOLS[kind as keyof typeof VIEWER_PROTOCOLS]}</td>
    <td class="number">${statistics === null ? '–' : duration(Date.now() - Date.parse(statistics.createdTime))}</td>
    <td class="number">${statistics === null ? '–' : bitrate(statistics.lastThroughputOut * BITS)}</td>
    <td class="number">${statistics === null ? '–' : bytes(statistics.totalBytesOut)}</td>
    <td class="number"><${Action} label="Kick" about=${id} isDanger run=${kick} onDone=${onDone} /></td>
  </tr>`;
}
