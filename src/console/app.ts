/** The console: a login, then a frame with the page of the URL. */
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import { apiClient, faultOf } from './api-client.ts';
import { ChannelsPage } from './channels-page.ts';
import { ConfigurationPage } from './configuration-page.ts';
import type { Context } from './context.ts';
import { html, type View } from './html.ts';
import { LiveClock } from './live-updates.ts';
import { LogPage } from './log-page.ts';
import { Login } from './login.ts';
import { Overview } from './overview.ts';
import { MayWrite } from './permission.ts';
import { PublishPage } from './publish-page.ts';
import { hashOf, type PageAddress, pageAt } from './routes.ts';
import { Sampler } from './sampler.ts';
import { StreamPage } from './stream-page.ts';
import { forgetToken, keepToken, storedToken } from './token-store.ts';

const MENU: readonly (readonly [PageAddress, string])[] = [
  [{ page: 'overview' }, 'Overview'],
  [{ page: 'publish' }, 'Publish'],
  [{ page: 'channels' }, 'Channels'],
  [{ page: 'configuration' }, 'Configuration'],
  [{ page: 'log' }, 'Log'],
];

/** The whole page. */
export function App(): View {
  const [context, setContext] = useState<Context | null>(null);
  const [message, setMessage] = useState<string | null>(null);
  const [isReady, setReady] = useState(storedToken() === null);
  const updates = useMemo(() => new LiveClock(), []);
  const leave = useCallback((why: string | null) => {
    forgetToken();
    setContext(null);
    setMessage(why);
  }, []);
  const enter = useCallback(
    async (token: string, keep: 'session' | 'device' | null): Promise<string | null> => {
      try {
        const entered = await contextOf(token, updates, () => leave('The server no longer accepts this token.'));
        if (keep !== null) keepToken(token, keep === 'device');
        setContext(entered);
        return null;
      } catch (error) {
        const { status, message } = faultOf(error);
        return status === 401 ? 'This is not an access token of this server.' : `Log in failed: ${message}.`;
      }
    },
    [updates, leave],
  );
  useEffect(() => {
    const token = storedToken();
    if (token === null) return;
    void enter(token, null).then((wrong) => {
      setMessage(wrong);
      setReady(true);
    });
  }, []);
  useEffect(() => context?.sampler.start(updates), [context]);
  if (context !== null) return html`<${Frame} context=${context} onLeave=${() => leave(null)} />`;
  if (!isReady) return html`<main class="login"><p role="status">Logging in …</p></main>`;
  return html`<${Login} message=${message} onToken=${(token: string, onDevice: boolean) => enter(token, onDevice ? 'device' : 'session')} />`;
}

/** Checks the token with a request, whose answer every page needs. */
async function contextOf(token: string, updates: LiveClock, onRefused: () => void): Promise<Context> {
  let isEntered = false;
  const client = apiClient(token, () => {
    if (isEntered) onRefused();
  });
  const server = await client.get('/v1/server');
  isEntered = true;
  return { client, updates, sampler: new Sampler(client), server };
}

function Frame({ context, onLeave }: { readonly context: Context; readonly onLeave: () => void }): View {
  const place = usePlace();
  const health = useHealth(context.sampler);
  const links = MENU.map(
    ([to, label]) => html`<a key=${label} href=${hashOf(to)} aria-current=${to.page === place.page ? 'page' : undefined}>${label}</a>`,
  );
  return html`<${MayWrite.Provider} value=${context.server.mayWrite}><header class="top">
      <a class="brand" href="#/">Millrace</a>
      <nav aria-label="Pages">${links}</nav>
      ${context.server.mayWrite ? null : html`<span class="badge" title="Buttons for changes are hidden">This token may only read</span>`}
      <span class=${`health ${health.level}`} role="status">${health.text}</span>
      <button type="button" class="plain" onClick=${onLeave}>Log out</button>
    </header>
    <main>${pageOf(place, context)}</main></${MayWrite.Provider}>`;
}

function pageOf(place: PageAddress, context: Context): View {
  switch (place.page) {
    case 'channels':
      return html`<${ChannelsPage} context=${context} />`;
    case 'configuration':
      return html`<${ConfigurationPage} context=${context} />`;
    case 'log':
      return html`<${LogPage} context=${context} />`;
    case 'publish':
      return html`<${PublishPage} context=${context} />`;
    case 'stream':
      return html`<${StreamPage} context=${context} name=${place} />`;
    case 'overview':
      return html`<${Overview} context=${context} />`;
  }
}

function usePlace(): PageAddress {
  const [place, setPlace] = useState(() => pageAt(location.hash));
  useEffect(() => {
    const follow = (): void => setPlace(pageAt(location.hash));
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  return place;
}

const WORDS: Readonly<Record<string, string>> = { ok: 'Healthy', degraded: 'Degraded', starting: 'Starting', stopping: 'Stopping' };

function useHealth(sampler: Sampler): { readonly text: string; readonly level: 'good' | 'warning' | 'bad' } {
  const [, setTick] = useState(0);
  useEffect(() => sampler.follow(() => setTick((tick) => tick + 1)), [sampler]);
  if (!sampler.isAnswering) return { text: 'No answer', level: 'bad' };
  const status = sampler.health?.status ?? 'ok';
  return { text: WORDS[status] ?? status, level: status === 'ok' ? 'good' : 'warning' };
}
