/** How to send a stream: from this browser, or with addresses for other programs. */
import { useMemo, useState } from 'preact/hooks';
import { BrowserPublisher } from './browser-publisher.ts';
import type { Context } from './context.ts';
import { CopyField } from './copy-field.ts';
import { Doctor } from './doctor.ts';
import { html, type View } from './html.ts';
import { addressHost, originOf, type ServerFacts } from './server-facts.ts';
import { listStreams } from './stream-list.ts';
import { useLive } from './use-live.ts';

const RTMP = 1935;
const LOOPBACK = /^(?:localhost|127\..*|\[::1\])$/;

interface Target {
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
}

/** The names are chosen once for all ways. */
export function PublishPage({ context }: { readonly context: Context }): View {
  const { client, updates, server } = context;
  const [stream, setStream] = useState('live');
  const [choice, setChoice] = useState('');
  const { data } = useLive(updates, 'applications', () => listStreams(client), 'names');
  const apps = (data ?? []).filter(({ app }) => app !== '*');
  const chosen = apps.find(({ vhost, app }) => `${vhost}/${app}` === choice) ?? apps[0];
  const target = { vhost: chosen?.vhost ?? 'default', app: chosen?.app ?? 'app', stream: stream.trim() || 'live' };
  const whip = whipAddress(server, target);
  const trial = useMemo(() => {
    const place = { ...target, stream: `trial-${crypto.getRandomValues(new Uint32Array(1))[0]}` };
    return { whip: whipAddress(server, place), srt: srtAddress(server, place) };
  }, [server, target.vhost, target.app]);
  return html`<h1>Publish</h1>
    <div class="bar">
      <label>Application <select value=${`${target.vhost}/${target.app}`} onChange=${(event: Event) => setChoice((event.target as HTMLSelectElement).value)}>
        ${apps.map(({ vhost, app }) => html`<option key=${`${vhost}/${app}`} value=${`${vhost}/${app}`}>${vhost} / ${app}</option>`)}
      </select></label>
      <label>Stream <input value=${stream} spellcheck=${false} onInput=${(event: InputEvent) => setStream((event.target as HTMLInputElement).value)} /></label>
    </div>
    ${LOOPBACK.test(location.hostname) ? html`<p class="warning">These addresses are for programs on this machine: the console was opened as ${location.hostname}. Open it by the name of the server to get those for others.</p>` : null}
    <div class="columns">
      <div class="stack"><${BrowserPublisher} address=${whip} place=${target} /><${Doctor} client=${client} server=${server} ...${trial} /></div>
      <${Programs} server=${server} target=${target} whip=${whip} />
    </div>`;
}

function Programs({ server, target, whip }: { readonly server: ServerFacts; readonly target: Target; readonly whip: string | null }): View {
  const { app, stream } = target;
  const host = addressHost();
  const { rtmp } = server.providers;
  const folder = rtmp?.port === undefined ? null : `rtmp://${host}${rtmp.port === RTMP ? '' : `:${rtmp.port}`}/${app}`;
  const caller = srtAddress(server, target);
  const encode = '-c:v libx264 -preset veryfast -tune zerolatency -pix_fmt yuv420p -g 60 -b:v 2500k -c:a aac -b:a 128k';
  return html`<section class="panel">
    <h2>OBS</h2>
    ${
      folder === null
        ? html`<p class="quiet">RTMP does not listen.</p>`
        : html`<${CopyField} label="Server (Service: Custom)" text=${folder} /><${CopyField} label="Stream key" text=${stream} />
      <p class="quiet small">Output: a keyframe interval of 1 or 2 s, and no B-frames for WebRTC viewers.</p>`
    }
    ${whip === null ? null : html`<${CopyField} label="Server (Service: WHIP)" text=${whip} hasCode />`}
    <h2>ffmpeg</h2>
    ${folder === null ? null : html`<${CopyField} label="A file, over RTMP" text=${`ffmpeg -re -i FILE ${encode} -f flv ${quoted(`${folder}/${stream}`)}`} />`}
    ${caller === null ? null : html`<${CopyField} label="A file, over SRT" text=${`ffmpeg -re -i FILE ${encode} -f mpegts ${quoted(caller)}`} />`}
    <h2>SRT</h2>
    ${caller === null ? html`<p class="quiet">SRT does not listen.</p>` : html`<${CopyField} label="Caller, for encoders and phones" text=${caller} hasCode />`}
    ${folder === null ? null : html`<h2>Phones over RTMP</h2><${CopyField} label="Address with the stream key" text=${`${folder}/${stream}`} hasCode />`}
    <p class="quiet small">With publish keys, signed URLs or SRT passphrases, append them to the address.</p>
  </section>`;
}

function whipAddress({ providers }: ServerFacts, { app, stream }: Target): string | null {
  const origin = originOf(providers.webrtc);
  return origin === null ? null : `${origin}/${encodeURIComponent(app)}/${encodeURIComponent(stream)}?direction=whip`;
}

function srtAddress({ providers: { srt } }: ServerFacts, { vhost, app, stream }: Target): string | null {
  if (srt?.[0] === undefined) return null;
  return `srt://${addressHost()}:${srt[0]}?streamid=${encodeURIComponent(`${vhost}/${app}/${stream}`)}`;
}

/** Quoted for a POSIX shell. */
function quoted(text: string): string {
  return /^[\w:/.@%-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
