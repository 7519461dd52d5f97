/** Checks whether ports of a running server answer, as far as this machine can, and describes how another machine tests the rest. */
import type { PortUse } from '../../findings/port-findings.ts';
import { probeSrt } from '../../transport/srt/srt-probe.ts';
import { hostPort } from '../../util/client-address.ts';
import { systemClock } from '../../util/clock.ts';
import { ALL_IPV4, ALL_IPV6 } from '../../util/listen-addresses.ts';
import { type Diagnosis, diagnosesOf } from './diagnosis.ts';

type Place = Pick<PortUse, 'protocol' | 'host' | 'port' | 'kind'>;

/** Long, because a busy machine answers late; only silent ports take the whole time. */
const TIMEOUT_MS = 3000;
/** Limit of SRT ports that are tested, all at once. */
const MAX_TRIED = 16;
const { ok, problem } = diagnosesOf('reach');

/** `own`: open ports of the server of this state folder; `all`: the ports of the configuration. */
export async function reach(own: readonly Place[], all: readonly Place[]): Promise<readonly Diagnosis[]> {
  const tried = await Promise.all(own.filter(isSrt).slice(0, MAX_TRIED).map(tryOne));
  const silent = tried.filter(({ ms }) => ms === null).map(({ place }) => place);
  const heard = tried.filter(({ ms }) => ms !== null).map(({ place }) => place);
  const told = heard.length === 0 ? '' : `SRT answers on ${heard.join(', ')}; `;
  return [
    ...(silent.length === 0 ? [] : [problem(`SRT does not answer on ${silent.join(', ')}`, 'see the log of the server')]),
    ok(`${told}${untried(all)}`),
  ];
}

/** Only a machine behind a firewall or router can test it. */
function untried(all: readonly Place[]): string {
  const srt = all.find(({ kind }) => kind === 'SRT ingest');
  const byHand =
    srt === undefined
      ? ''
      : `, SRT with: ffmpeg -re -f lavfi -i testsrc2=size=320x180:rate=25 -t 5 -c:v libx264 -pix_fmt yuv420p -g 25 -f mpegts 'srt://HOST:${srt.port}?streamid=default/app/trial'`;
  return `not tested: whether the ports are reachable from outside. On another machine, the page Publish of the console tests RTMP and WebRTC${byHand}`;
}

function isSrt({ kind }: Place): boolean {
  return kind.startsWith('SRT ');
}

async function tryOne({ host, port }: Place): Promise<{ readonly place: string; readonly ms: number | null }> {
  const address = host === ALL_IPV4 ? '127.0.0.1' : host === ALL_IPV6 ? '::1' : host;
  return { place: hostPort(address, port), ms: await probeSrt({ host: address, port, timeout: TIMEOUT_MS, clock: systemClock }) };
}
