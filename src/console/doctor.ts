/** Tests whether publishers at this browser's place can reach the server. */
import { useContext, useEffect, useState } from 'preact/hooks';
import type { MillraceClient } from '../client/index.ts';
import { CopyField } from './copy-field.ts';
import { html, type View } from './html.ts';
import { MayWrite } from './permission.ts';
import { type ReachResult, tryAll } from './reach.ts';
import type { ServerFacts } from './server-facts.ts';

const MARKS: Readonly<Record<ReachResult['level'], string>> = { good: 'OK', warning: '–', bad: 'No' };

/** The tested addresses; both belong to streams that nobody publishes. */
export interface DoctorOptions {
  readonly client: MillraceClient;
  readonly server: ServerFacts;
  readonly whip: string | null;
  readonly srt: string | null;
}

/** Tests only on request: the WebRTC test starts a publication. */
export function Doctor({ client, server, whip, srt }: DoctorOptions): View {
  const [findings, setFindings] = useState<readonly ReachResult[] | null>(null);
  const [isBusy, setBusy] = useState(false);
  const mayWrite = useContext(MayWrite);
  useEffect(() => setFindings(null), [whip]);
  const run = async (): Promise<void> => {
    setBusy(true);
    setFindings([]);
    await tryAll(server, { whip, srt, client, mayPublish: mayWrite }, setFindings);
    setBusy(false);
  };
  return html`<section class="panel" aria-labelledby="doctor-title">
    <div class="bar"><h2 id="doctor-title">Does this browser reach the server?</h2><button type="button" disabled=${isBusy} onClick=${() => void run()}>${isBusy ? 'Trying …' : 'Try it'}</button></div>
    ${findings === null ? html`<p class="quiet">Tests the ports of RTMP${mayWrite ? ', and of WebRTC over UDP and TCP' : ''}. A browser cannot speak SRT: the server tries that port itself.</p>` : null}
    <div role="status"><ul class="findings">${(findings ?? []).map(
      ({ what, level, words, commands = [] }) => html`<li key=${what}><b class=${level}>${MARKS[level]}</b> <b>${what}</b> ${words}
      ${commands.map(({ by, text }) => html`<${CopyField} key=${by} label=${`With ${by}`} text=${text} />`)}</li>`,
    )}</ul></div>
  </section>`;
}
