/** The typed client of the API, for the server that the console came from. The token goes into a header and nowhere else. */
import { MillraceClient, MillraceError } from '../client/index.ts';

const DEADLINE_MS = 15_000;

/** Why there is no answer to show. */
export interface Fault {
  /** Status of the answer; 0: there was none. */
  readonly status: number;
  /** In the words of the server, where it said something. */
  readonly message: string;
}

/** A client with this token. `onRefused`: the token is not good, or no longer. */
export function apiClient(token: string, onRefused: () => void): MillraceClient {
  // Whatever the token holds: that of Bearer may have no blanks.
  const authorization = `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(token)))}`;
  return new MillraceClient({
    // The page is in `/console/`, wherever a proxy has put that.
    url: new URL('../', document.baseURI).href,
    timeout: DEADLINE_MS,
    fetch: async (url, init) => {
      const headers = { ...(init.headers as Readonly<Record<string, string>>), authorization };
      // With credentials a wrong token opens the browser's own dialogue.
      const answer = await fetch(url, { ...init, headers, credentials: 'omit', cache: 'no-store' });
      if (answer.status === 401) onRefused();
      return answer;
    },
  });
}

/** The text of an error, whatever was thrown. */
export function faultOf(error: unknown): Fault {
  if (error instanceof MillraceError) {
    const { response } = (error.body ?? {}) as { readonly response?: unknown };
    const more = error.reason ?? (typeof response === 'string' ? response : null);
    return { status: error.status, message: more === null ? error.message : `${error.message}: ${more}` };
  }
  return { status: 0, message: error instanceof Error ? error.message : String(error) };
}
