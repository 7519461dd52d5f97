/** Where the browser keeps the access token: until the tab is closed, or on the device where its owner asks for it. Never in a cookie. */

const KEY = 'millrace.token';

/** The token of an earlier login; null without one. */
export function storedToken(): string | null {
  return read(sessionStorage) ?? read(localStorage);
}

/** Keeps a token that has been good. */
export function keepToken(token: string, onDevice: boolean): void {
  forgetToken();
  try {
    (onDevice ? localStorage : sessionStorage).setItem(KEY, token);
  } catch {
    // Storage is off: the token lives as long as the page.
  }
}

/** Removes it wherever it is. */
export function forgetToken(): void {
  for (const storage of [sessionStorage, localStorage]) {
    try {
      storage.removeItem(KEY);
    } catch {
      // Nothing is kept there.
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
