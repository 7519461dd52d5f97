/** The log of the server, live. */
import { useEffect, useState } from 'preact/hooks';
import type { LogEvent } from '../client/index.ts';
import { faultOf } from './api-client.ts';
import type { Context } from './context.ts';
import { timeOfDay } from './format.ts';
import { html, type View } from './html.ts';

/** Displayed lines. */
const MAX_SHOWN = 500;
const RETRY_MS = 5000;
const GATHER_MS = 200;
const LEVELS = ['debug', 'info', 'warn', 'error'] as const;
type Level = (typeof LEVELS)[number];
/** Fields with a column, or of no interest to users. */
const OWN_FIELDS: readonly string[] = ['part', 'session', 'id'];

/** Newest first, so that new lines need no scrolling. */
export function LogPage({ context }: { readonly context: Context }): View {
  const [level, setLevel] = useState<Level>('info');
  const [filter, setFilter] = useState('');
  const [isHeld, setHeld] = useState(false);
  const [held, setHeldLines] = useState<readonly LogEvent[]>([]);
  const { lines, fault } = useLog(context, level);
  const words = filter.trim().toLowerCase();
  const shown = (isHeld ? held : lines).filter(
    (line) => words === '' || JSON.stringify([line.message, line.fields]).toLowerCase().includes(words),
  );
  const hold = (): void => {
    setHeldLines(lines);
    setHeld(!isHeld);
  };
  if (!context.server.mayWrite) {
    return html`<h1>Log</h1><p>The log has data of all clients, so it is shown only with a token that may write. This one may only read.</p>`;
  }
  return html`<div class="bar"><h1>Log</h1>
      <label>From level <select value=${level} onChange=${(event: Event) => setLevel((event.target as HTMLSelectElement).value as Level)}>
        ${LEVELS.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select></label>
      <button type="button" aria-pressed=${isHeld} onClick=${hold}>${isHeld ? 'Resume' : 'Pause'}</button>
      <input type="search" placeholder="Filter" aria-label="Filter lines" value=${filter} onInput=${(event: InputEvent) => setFilter((event.target as HTMLInputElement).value)} />
    </div>
    ${fault === null ? null : html`<p role="alert" class="bad">The log cannot be followed: ${fault}</p>`}
    ${
      shown.length === 0
        ? html`<p class="quiet">${words === '' ? 'No lines yet.' : 'No line contains this text.'}</p>`
        : html`<div class="log panel" role="log" aria-label="Lines of the log, newest first" tabindex="0"><ol>${shown.map((line) => html`<${Line} key=${line.id} line=${line} />`)}</ol></div>`
    }
    <p class="quiet small">The newest ${MAX_SHOWN} lines. The level chosen here does not depend on the level of the log. Secrets are left out.</p>`;
}

function Line({ line: { time = '', level = 'info', message = '', fields = {} } }: { readonly line: LogEvent }): View {
  const more = Object.entries(fields).filter(([name]) => !OWN_FIELDS.includes(name));
  return html`<li class=${level}><time datetime=${time}>${timeOfDay(Date.parse(time))}</time> <b>${level}</b>${' '}
    ${fields['part'] === undefined ? null : html`<span class="quiet">${fields['part']}</span> `}<span>${message}</span>
    ${more.length === 0 ? null : html`<span class="quiet small"> ${more.map(([name, value]) => `${name}=${value}`).join(' ')}</span>`}</li>`;
}

/** Newest first. Reconnects after a refusal. */
function useLog({ client, server }: Context, level: Level): { readonly lines: readonly LogEvent[]; readonly fault: string | null } {
  const [lines, setLines] = useState<readonly LogEvent[]>([]);
  const [fault, setFault] = useState<string | null>(null);
  useEffect(() => {
    if (!server.mayWrite) return;
    const end = new AbortController();
    let kept: readonly LogEvent[] = [];
    let timer = 0;
    const take = (line: LogEvent): void => {
      setFault(null);
      if (line.type !== 'log') return;
      kept = [line, ...kept.slice(0, MAX_SHOWN - 1)];
      // Lines come in bursts.
      if (timer !== 0) return;
      timer = setTimeout(() => {
        timer = 0;
        setLines(kept);
      }, GATHER_MS);
    };
    const run = async (): Promise<void> => {
      while (!end.signal.aborted) {
        try {
          kept = [];
          for await (const line of client.logs({ level, lines: MAX_SHOWN, signal: end.signal, onLost: (error) => setFault(error.message) }))
            take(line);
        } catch (error) {
          if (end.signal.aborted) return;
          setFault(faultOf(error).message);
        }
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    };
    setLines([]);
    void run();
    return () => {
      end.abort();
      clearTimeout(timer);
    };
  }, [client, level]);
  return { lines, fault };
}
