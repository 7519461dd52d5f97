/** The queues of one stream. */
import type { StreamPart } from './context.ts';
import { short } from './format.ts';
import { html, type View } from './html.ts';
import { useLive } from './use-live.ts';

/** Names of queues, by a part of the URN. */
const ROLES: readonly (readonly [RegExp, string])[] = [
  [/p=imr/, 'Source to router'],
  [/streamworker_\[push\]_/, 'Push'],
  [/streamworker_\[file\]_/, 'Recording'],
  [/p=trs:r=decoder/, 'Decoder'],
  [/p=trs:r=filter/, 'Filter'],
  [/p=trs:r=encoder/, 'Encoder'],
];

const US_PER_MS = 1000;

/** `outputs`: names of the output streams, whose queues belong to the stream too. */
export function QueueTable({ context, name, outputs }: StreamPart): View {
  const { client, updates } = context;
  const key = `queues ${name.vhost}/${name.app}/${name.stream}`;
  const { data } = useLive(updates, key, () => client.get('/v2/internals/queues'));
  const starts = [name.stream, ...outputs].map((stream) => `v=${name.vhost}#${name.app}:s=/${stream}:`);
  const own = (data ?? []).filter(({ urn }) => starts.some((start) => urn.includes(start)));
  if (data === null || own.length === 0) return null;
  return html`<section>
    <div class="bar"><h2 id="queues-title">Queues</h2><span class="quiet">packets that wait inside the server; a full queue drops packets or slows its source</span></div>
    <div class="scroll" tabindex="0" role="region" aria-labelledby="queues-title"><table>
      <thead><tr><th scope="col">Queue</th><th scope="col" class="number">Waiting</th><th scope="col" class="number">Peak</th><th scope="col" class="number">Limit</th>
        <th scope="col" class="number">Wait</th><th scope="col" class="number">In/s</th><th scope="col" class="number">Out/s</th><th scope="col" class="number">Dropped</th></tr></thead>
      <tbody>${own.map(
        (queue) => html`<tr key=${queue.urn}><th scope="row" title=${queue.urn}>${roleOf(queue.urn)}</th>
        <td data-label="Waiting" class=${`number ${queue.threshold > 0 && queue.size >= queue.threshold ? 'bad' : ''}`}>${queue.size}</td><td class="number" data-label="Peak">${queue.peak}</td><td class="number" data-label="Limit">${queue.threshold === 0 ? '–' : queue.threshold}</td>
        <td class="number" data-label="Wait">${short(queue.avgWaitingTime / US_PER_MS)} ms</td><td class="number" data-label="In/s">${short(Number(queue.inputPerSecond))}</td><td class="number" data-label="Out/s">${short(Number(queue.outputPerSecond))}</td>
        <td data-label="Dropped" class=${`number ${queue.drop > 0 ? 'warning' : ''}`}>${queue.drop}</td></tr>`,
      )}</tbody></table></div>
  </section>`;
}

function roleOf(urn: string): string {
  const words = ROLES.find(([pattern]) => pattern.test(urn))?.[1];
  const tail = urn.slice(urn.lastIndexOf('r=') + 2);
  return words === undefined ? tail : `${words} (${tail})`;
}
