/** The login page. */
import { useState } from 'preact/hooks';
import { html, type View } from './html.ts';

/** Options of the login page. */
export interface LoginOptions {
  /** Resolves with the error text, or with null if the token is valid. */
  readonly onToken: (token: string, onDevice: boolean) => Promise<string | null>;
  /** Why the page is shown again; null at first. */
  readonly message: string | null;
}

/** A form with one field. */
export function Login({ onToken, message }: LoginOptions): View {
  const [token, setToken] = useState('');
  const [onDevice, setOnDevice] = useState(false);
  const [wrong, setWrong] = useState<string | null>(message);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setWrong(await onToken(token.trim(), onDevice));
    setBusy(false);
  };
  return html`<main class="login">
    <h1>Millrace</h1>
    <form onSubmit=${submit}>
      <label for="token">Access token</label>
      <input type="text" autocomplete="username" value="millrace" hidden readonly />
      <input id="token" type="password" autocomplete="current-password" spellcheck=${false} autofocus required
        aria-describedby="token-help" aria-invalid=${wrong !== null}
        value=${token} onInput=${(event: InputEvent) => setToken((event.target as HTMLInputElement).value)} />
      <p id="token-help" class="quiet">The server stores it in <code>state/access-token</code> unless the configuration sets one, and prints it when started in a terminal.</p>
      <label class="check"><input type="checkbox" checked=${onDevice} onChange=${() => setOnDevice(!onDevice)} /> Remember on this device</label>
      <p role="alert" class="bad">${wrong}</p>
      <button type="submit" class="main" disabled=${isBusy || token.trim() === ''}>Log in</button>
    </form>
  </main>`;
}
