/** The typed client of the API for the server that delivered the console. The token goes only into a header. */
import { MillraceClient, MillraceError } from '../client/index.ts';

const DEADLINE_MS = 15_000;

/** Why a request has no result. */
export interface Fault {
  /** HTTP status; 0: no answer. */
  readonly status: number;
  /** The server's text, if it sent one. */
  readonly message: string;
}

/** A client with this token. `onRefused`: the server refuses the token, from the start or later. */
export function apiClient(token: string, onRefused: () => void): MillraceClient {
  // Basic takes tokens with any characters; Bearer allows no blanks.
  const authorization = `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(token)))}`;
  return new MillraceClient({
    // The page is in `/console/`, possibly below a path of a proxy.
    url: new URL('../', document.baseURI).href,
    timeout: DEADLINE_MS,
    fetch: async (url, init) => {
      const headers = { ...(init.headers as Readonly<Record<string, string>>), authorization };
      // With credentials, a wrong token would open the browser's own dialogue.
      const answer = await fetch(url, { ...init, headers, credentials: 'omit', cache: 'no-store' });
      if (answer.status === 401) onRefused();
      return answer;
    },
  });
}

/** The text of any thrown value. */
export function faultOf(error: unknown): Fault {
  if (error instanceof MillraceError) {
    const { response } = (error.body ?? {}) as { readonly response?: unknown };
    const more = error.reason ?? (typeof response === 'string' ? response : null);
    return { status: error.status, message: more === null ? error.message : `${error.message}: ${more}` };
  }
  return { status: 0, message: error instanceof Error ? error.message : String(error) };
}
