/** Tests whether the server's ports are reachable from this browser. */
import type { MillraceClient } from '../client/index.ts';
import { faultOf } from './api-client.ts';
import { addressHost, type ServerFacts } from './server-facts.ts';
import { gathered, offerWhip, type WhipAnswer } from './whip.ts';

/** The result of one attempt. */
export interface ReachResult {
  readonly what: string;
  readonly level: 'good' | 'warning' | 'bad';
  readonly words: string;
  /** Shell commands for a test by hand. */
  readonly commands?: readonly { readonly by: string; readonly text: string }[];
}

const RTMP_MS = 5000;
const MEDIA_MS = 8000;
/** A test over UDP must not succeed over TCP. */
const TCP_CANDIDATES = /^a=candidate:\S+ \d+ tcp .*\r?\n/gim;
const RELAY = /<(turns?:[^>]+)>;[^,]*?username="([^"]*)";[^,]*?credential="([^"]*)"/g;

/** URL for a publication by this browser, null if WebRTC is not enabled; and whether the token allows it. */
export interface Trial {
  readonly whip: string | null;
  readonly mayPublish: boolean;
  /** SRT URL for publishers; null if SRT is not enabled. */
  readonly srt: string | null;
  readonly client: MillraceClient;
}

/** Runs all tests, one after the other. Never rejects. */
export async function tryAll(
  { providers }: ServerFacts,
  { whip, mayPublish, srt, client }: Trial,
  tell: (found: readonly ReachResult[]) => void,
): Promise<void> {
  const found: ReachResult[] = [];
  const tellAlso = (finding: ReachResult): void => {
    found.push(finding);
    tell([...found]);
  };
  const add = (what: string, level: ReachResult['level'], words: string): void => tellAlso({ what, level, words });
  const rtmp = providers.rtmp?.port;
  if (rtmp === undefined) add('RTMP', 'warning', 'Not enabled on the server.');
  else add(`RTMP, TCP port ${rtmp}`, ...(await tryRtmp(rtmp)));
  // With `transport=tcp` the answer names the relays, but the connection may still use UDP.
  const udp = whip === null || !mayPublish ? null : await tryWebrtc(`${whip}&transport=tcp`, null);
  if (whip === null) add('WebRTC', 'warning', 'The server has no port for it that this page can use.');
  else if (udp === null) add('WebRTC', 'warning', 'Not tested: the test publishes for a moment, and this token may only read.');
  else {
    add('WebRTC over UDP', udp.level, udp.words);
    const relays = relaysIn(udp.link);
    if (udp.link === null) add('WebRTC over TCP', 'warning', 'Not tested: the server refused the test over UDP.');
    else if (relays.length === 0) add('WebRTC over TCP', 'warning', 'The server has no TCP relay (IceCandidates/TcpRelay).');
    else {
      const tcp = await tryWebrtc(`${whip}&transport=tcp`, relays);
      add('WebRTC over TCP', tcp.level, tcp.words);
    }
  }
  const [port] = providers.srt ?? [];
  if (srt === null || port === undefined) return add('SRT', 'warning', 'Not enabled on the server.');
  add(`SRT, UDP port ${port}, tested by the server itself`, ...(await trySrt(client, port, mayPublish)));
  const passes = udp?.level === 'good' ? ' UDP from here reaches the server: WebRTC connected.' : '';
  tellAlso({
    ...{ what: 'SRT from here', level: 'warning' },
    words: `Not tested: browsers cannot speak SRT.${passes} Test it by hand: if the port is reachable, ffmpeg ends without an error, and srt-live-transmit prints “SRT target connected”.`,
    commands: srtCommands(srt),
  });
}

/** Tests the server's own address and the host of this page. */
async function trySrt(client: MillraceClient, port: number, mayWrite: boolean): Promise<[ReachResult['level'], string]> {
  const host = addressHost();
  try {
    const all = await client.get('/v2/internals/srt', { query: mayWrite ? { host } : {} });
    const trials = all.filter((trial) => trial.direction === 'publish' && trial.port === port);
    const of = (way: 'own' | 'host') =>
      trials.find((trial) => trial.way === way && trial.answered) ?? trials.find((trial) => trial.way === way);
    const [own, other] = [of('own'), of('host')];
    const told = own === undefined ? '' : `${own.address}${own.roundTripMs === undefined ? '' : ` in ${own.roundTripMs} ms`}`;
    if (own?.answered !== true)
      return ['bad', `The port does not answer${told === '' ? '' : ` on ${told}`}: the server may be draining or its port closed.`];
    if (other === undefined) return ['good', `It answers on ${told}.`];
    if (other.answered) return ['good', `It answers on ${told}, and over ${host}.`];
    return [
      'warning',
      `It answers on ${told}, but not over ${host}: a firewall, a port that is not forwarded, or a router without NAT loopback.`,
    ];
  } catch (error) {
    return ['warning', `Not tested: ${faultOf(error).message}`];
  }
}

/** For a POSIX shell; each runs for five seconds. */
function srtCommands(url: string): { readonly by: string; readonly text: string }[] {
  const picture = 'testsrc2=size=320x180:rate=25';
  return [
    { by: 'ffmpeg', text: `ffmpeg -re -f lavfi -i ${picture} -t 5 -c:v libx264 -pix_fmt yuv420p -g 25 -f mpegts '${url}'` },
    { by: 'srt-live-transmit', text: `head -c 1316 /dev/zero | srt-live-transmit -t:5 file://con '${url}'` },
  ];
}

/** The RTMP port answers an HTTP request with an explanation. The browser hides its content, but reports that there was an answer. */
async function tryRtmp(port: number): Promise<[ReachResult['level'], string]> {
  if (location.protocol === 'https:') return ['warning', 'Not tested: a page loaded over HTTPS cannot connect to a port without TLS.'];
  const signal = AbortSignal.timeout(RTMP_MS);
  try {
    await fetch(`http://${addressHost()}:${port}/`, { mode: 'no-cors', credentials: 'omit', cache: 'no-store', signal });
    return ['good', 'Reachable from here.'];
  } catch {
    if (signal.aborted) return ['bad', `No answer within ${RTMP_MS / 1000} s: a firewall or router between here and the server drops it.`];
    return [
      'bad',
      'Not reachable from here: the connection was refused or closed. Possible causes: a firewall, a port that is not forwarded, or an address that the server does not listen on.',
    ];
  }
}

/** A publication without media. `relays`: connect through these only. `link` null: refused before the connection attempt. */
async function tryWebrtc(
  url: string,
  relays: RTCIceServer[] | null,
): Promise<Pick<ReachResult, 'level' | 'words'> & { readonly link: string | null }> {
  const connection = new RTCPeerConnection(relays === null ? {} : { iceServers: relays, iceTransportPolicy: 'relay' });
  let answered: WhipAnswer | null = null;
  try {
    connection.addTransceiver('video', { direction: 'sendonly' });
    const settled = new Promise<boolean>((resolve) => {
      setTimeout(() => resolve(false), MEDIA_MS);
      connection.addEventListener('connectionstatechange', () => {
        if (connection.connectionState === 'connected') resolve(true);
        else if (connection.connectionState === 'failed') resolve(false);
      });
    });
    await connection.setLocalDescription();
    await gathered(connection);
    answered = await offerWhip(url, connection.localDescription?.sdp ?? '');
    const sdp = relays === null ? answered.answer.replace(TCP_CANDIDATES, '') : answered.answer;
    await connection.setRemoteDescription({ type: 'answer', sdp });
    if (await settled) return { level: 'good', words: 'Reachable from here.', link: answered.link };
    const where =
      relays === null
        ? 'its UDP ports, or the addresses in IceCandidates, are not reachable from here'
        : `its relay (${String(relays[0]?.urls)}) is not reachable from here`;
    return { level: 'bad', words: `The server answers, but ${where}.`, link: answered.link };
  } catch (error) {
    return { level: 'bad', words: error instanceof Error ? error.message : String(error), link: answered?.link ?? null };
  } finally {
    const resource = answered?.resource ?? null;
    if (resource !== null) await fetch(resource, { method: 'DELETE', credentials: 'omit' }).catch(() => null);
    connection.close();
  }
}

function relaysIn(link: string | null): RTCIceServer[] {
  return [...(link ?? '').matchAll(RELAY)].map(([, urls = '', username = '', credential = '']) => ({ urls, username, credential }));
}
