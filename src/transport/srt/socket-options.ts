/** Options by the names of libsrt (`SRTO_…`, with or without the prefix), as configuration files have them. */
import { DEFAULT_CONNECTION_LIMITS, type SrtConnectionLimits } from '../../wire/srt/connection.ts';
import { isKeyLength, type KeyLength } from '../../wire/srt/key-material.ts';
import { PASSPHRASE_LENGTHS } from '../../wire/srt/key-wrap.ts';
import { DEFAULT_BANDWIDTH } from '../../wire/srt/live-pacer.ts';
import { DEFAULT_KEY_REFRESH, type KeyRefresh } from '../../wire/srt/session-keys.ts';
import { DEFAULT_LATENCY, type LatencyWish } from '../../wire/srt/terms.ts';

/** The result of a listener's options. */
export interface ListenerSettings {
  /** Null: callers must not encrypt. */
  readonly passphrase: string | null;
  readonly keyLength: KeyLength | null;
  readonly latency: LatencyWish;
  readonly keyRefresh: KeyRefresh;
  readonly connectionLimits: SrtConnectionLimits;
  /** Names that are known and have no effect here. */
  readonly ignored: readonly string[];
}

/** An invalid option; the message names it, its value and the permitted values. */
export class SocketOptionError extends Error {
  override readonly name = 'SocketOptionError';
}

const MAX_LATENCY = 65_535;
const MIN_BUFFER = 32;
const MAX_BUFFER = 65_536;

/** Known options without effect: options of sockets, files and groups, and options that a listener in live mode does not decide. */
export const IDLE_SRT_OPTIONS: readonly string[] = (
  'BINDTODEVICE CONGESTION CONNTIMEO CRYPTOMODE DRIFTTRACER ENFORCEDENCRYPTION FC GROUPCONNECT GROUPMINSTABLETIMEO GROUPTYPE IPTOS ' +
  'IPTTL IPV6ONLY LINGER LOSSMAXTTL MAXREXMITBW MESSAGEAPI MININPUTBW MINVERSION MSS NAKREPORT PACKETFILTER PAYLOADSIZE RCVTIMEO ' +
  'RENDEZVOUS RETRANSMITALGO REUSEADDR SENDER SNDDROPDELAY SNDTIMEO STREAMID TLPKTDROP TRANSTYPE TSBPDMODE UDP_RCVBUF UDP_SNDBUF'
).split(' ');
const WITHOUT_EFFECT = new Set(IDLE_SRT_OPTIONS);

/** Reads the options of a listener; a later one of the same name wins. Throws `SocketOptionError`. */
export function readListenerOptions(options: readonly { readonly key: string; readonly value: string }[]): ListenerSettings {
  const given = new Map<string, string>();
  const ignored: string[] = [];
  for (const { key, value } of options) {
    const name = key
      .trim()
      .toUpperCase()
      .replace(/^SRTO_/, '');
    if (name === 'RCVSYN' || name === 'SNDSYN') throw new SocketOptionError(`${key} cannot be set: the server never blocks`);
    if (WITHOUT_EFFECT.has(name)) ignored.push(name);
    else if (KNOWN.has(name)) given.set(name, value.trim());
    else throw new SocketOptionError(`${key} is no option of a listener; known: ${[...KNOWN].join(', ')}`);
  }
  const number = (name: string, range: { least: number; most: number; standard: number }): number => readNumber(given, name, range);
  const latency = number('LATENCY', { least: 0, most: MAX_LATENCY, standard: -1 });
  const delay = (name: string, standard: number): number =>
    number(name, { least: 0, most: MAX_LATENCY, standard: latency < 0 ? standard : latency });
  const overhead = number('OHEADBW', { least: 5, most: 100, standard: DEFAULT_BANDWIDTH.overhead });
  const most = Number.MAX_SAFE_INTEGER;
  const maximum = number('MAXBW', { least: -1, most, standard: DEFAULT_BANDWIDTH.maximum });
  const every = number('KMREFRESHRATE', { least: 2, most: 2 ** 30, standard: DEFAULT_KEY_REFRESH.every });
  return {
    passphrase: readPassphrase(given.get('PASSPHRASE')),
    keyLength: readKeyLength(given.get('PBKEYLEN')),
    latency: { receive: delay('RCVLATENCY', DEFAULT_LATENCY.receive), peer: delay('PEERLATENCY', DEFAULT_LATENCY.peer) },
    keyRefresh: {
      every,
      announceBefore: number('KMPREANNOUNCE', {
        least: 1,
        most: every - 1,
        standard: Math.min(DEFAULT_KEY_REFRESH.announceBefore, Math.ceil(every / 2)),
      }),
    },
    connectionLimits: {
      idleTimeout: number('PEERIDLETIMEO', { least: 100, most: 3_600_000, standard: DEFAULT_CONNECTION_LIMITS.idleTimeout / 1000 }) * 1000,
      sendBuffer: bufferPackets(number('SNDBUF', { least: 1, most, standard: 0 }), DEFAULT_CONNECTION_LIMITS.sendBuffer),
      receiveBuffer: bufferPackets(number('RCVBUF', { least: 1, most, standard: 0 }), DEFAULT_CONNECTION_LIMITS.receiveBuffer),
      bandwidth: {
        maximum: maximum < 0 ? DEFAULT_BANDWIDTH.maximum : maximum,
        input: number('INPUTBW', { least: 0, most, standard: 0 }),
        overhead,
      },
    },
    ignored,
  };
}

const KNOWN = new Set(
  'PASSPHRASE PBKEYLEN LATENCY RCVLATENCY PEERLATENCY PEERIDLETIMEO SNDBUF RCVBUF MAXBW INPUTBW OHEADBW KMREFRESHRATE KMPREANNOUNCE'.split(
    ' ',
  ),
);

function readNumber(
  given: ReadonlyMap<string, string>,
  name: string,
  { least, most, standard }: { least: number; most: number; standard: number },
): number {
  const text = given.get(name);
  if (text === undefined) return standard;
  const value = /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new SocketOptionError(`${name} is ${JSON.stringify(text)}, must be a whole number from ${least} to ${most}`);
}

/** Throws `SocketOptionError` when it is too short or too long; the message does not repeat it. */
export function readPassphrase(text: string | undefined): string | null {
  if (text === undefined || text === '') return null;
  const { min, max } = PASSPHRASE_LENGTHS;
  const length = Buffer.byteLength(text);
  if (length < min || length > max) throw new SocketOptionError(`PASSPHRASE has ${length} bytes, must have ${min} to ${max}`);
  return text;
}

function readKeyLength(text: string | undefined): KeyLength | null {
  const length = Number(text ?? 0);
  if (length === 0) return null;
  if (isKeyLength(length)) return length;
  throw new SocketOptionError(`PBKEYLEN is ${JSON.stringify(text)}, must be 0, 16, 24 or 32`);
}

/** Bytes as packets of a datagram each, rounded up to a power of two; 0: `standard`. */
function bufferPackets(bytes: number, standard: number): number {
  if (bytes === 0) return standard;
  const packets = 2 ** Math.ceil(Math.log2(Math.max(1, bytes / 1500)));
  return Math.min(MAX_BUFFER, Math.max(MIN_BUFFER, packets));
}
