/** Storage of the access token: for the session of the tab, or permanently if the user wants that. Never in a cookie. */

const KEY = 'millrace.token';

/** The token of an earlier login; null without one. */
export function storedToken(): string | null {
  return read(sessionStorage) ?? read(localStorage);
}

/** Stores a token that the server has accepted. */
export function keepToken(token: string, onDevice: boolean): void {
  forgetToken();
  try {
    (onDevice ? localStorage : sessionStorage).setItem(KEY, token);
  } catch {
    // Without storage the token lives as long as the page.
  }
}

/** Removes it from both storages. */
export function forgetToken(): void {
  for (const storage of [sessionStorage, localStorage]) {
    try {
      storage.removeItem(KEY);
    } catch {
      // Without storage nothing is kept.
    }
  }
}

function read(storage: Storage): string | null {
  try {
    return storage.getItem(KEY);
  } catch {
    return null;
  }
}
