/** Readers of byte streams: the cuts of the network must make no difference to results and refusals. */
import { inspect } from 'node:util';
import { DEFAULT_HTTP_LIMITS } from '../../../src/delivery/http-limits.ts';
import { ProtocolError } from '../../../src/util/protocol-error.ts';
import { HttpFault } from '../../../src/wire/http/http-fault.ts';
import { RequestReader } from '../../../src/wire/http/request-reader.ts';
import { frameDatagram, TcpFramer } from '../../../src/wire/ice/tcp-framer.ts';
import { OvtReader } from '../../../src/wire/ovt/reader.ts';
import { RtspReader } from '../../../src/wire/rtsp/rtsp-message.ts';
import { frameChannelData, TurnFramer } from '../../../src/wire/turn/turn-framer.ts';
import { packetsOf, recordedOvt } from '../../fakes/recorded-ovt.ts';
import type { FuzzTarget } from '../support/fuzz-target.ts';
import type { InputForm } from '../support/mutations.ts';

/** Sizes of the pieces in which each input is read, bytes; 0: the whole input. */
const PIECES = [0, 1, 13] as const;
/** Limit of inputs, bytes: reading byte by byte copies the held bytes each time, so the work is quadratic up to the size of a frame. */
const MAX_LENGTH = 2048;
/** For all readings together: a byte takes some dozen blocks when it comes alone, and as many when it completes something. */
const MAX_STEPS = 5000;
const MAX_STEPS_PER_BYTE = 150;
const WHOLE = { depth: 4, maxStringLength: null, maxArrayLength: null } as const;

const REFUSED = 'refused';

/** Takes the next bytes, reports completed items, and returns whether the stream can continue. */
type Reader = (piece: Buffer, tell: (item: unknown) => void) => 'open' | typeof REFUSED;

function readIn(make: () => Reader, input: Buffer, piece: number): string[] {
  const reader = make();
  const items: string[] = [];
  const step = piece === 0 ? Math.max(1, input.length) : piece;
  for (let at = 0; at < input.length; at += step) {
    try {
      const state = reader(input.subarray(at, at + step), (item) => items.push(inspect(item, WHOLE)));
      if (state === REFUSED) return [...items, REFUSED];
    } catch (error) {
      if (!(error instanceof ProtocolError || error instanceof HttpFault)) throw error;
      return [...items, REFUSED];
    }
  }
  return items;
}

/** Two results are equal. If both were refused, items before the refusal may be missing in one. */
function isSame(one: readonly string[], other: readonly string[]): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  if (short.at(-1) !== REFUSED || long.at(-1) !== REFUSED)
    return short.length === long.length && short.every((item, at) => item === long[at]);
  return short.slice(0, -1).every((item, at) => item === long[at]);
}

function cuts(name: string, form: InputForm, make: () => Reader, seeds: () => readonly Uint8Array[]): FuzzTarget {
  return {
    name,
    form,
    seeds,
    run: (input) => {
      const bytes = input.subarray(0, MAX_LENGTH);
      const [whole = [], ...others] = PIECES.map((piece) => readIn(make, bytes, piece));
      for (const other of others) {
        if (!isSame(whole, other)) throw new Error(`where bytes are cut makes a difference: ${whole.join()} and ${other.join()}`);
      }
      return whole.length;
    },
    most: (length) => 2 + length,
    mostSteps: (length) => MAX_STEPS + MAX_STEPS_PER_BYTE * Math.min(length, MAX_LENGTH),
    cost: 6,
  };
}

const RTSP = 'RTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-Length: 5\r\n\r\nv=0\r\n$\0\0\x02ab$\x01\0\0OPTIONS * RTSP/1.0\r\nCSeq: 9\r\n\r\n';
const HTTP =
  'GET /app/stream/llhls.m3u8?a=b HTTP/1.1\r\nHost: a:3333\r\nAccept-Encoding: gzip\r\n\r\n\r\nPOST /x HTTP/1.0\r\nContent-Length: 0\r\n\r\n';

export const FRAMING_TARGETS: readonly FuzzTarget[] = [
  cuts(
    'http-cuts',
    'text',
    () => {
      const reader = new RequestReader(DEFAULT_HTTP_LIMITS);
      return (piece, tell) => {
        // The reader keeps pushed bytes until the head is complete.
        reader.push(Buffer.from(piece));
        for (let head = reader.next(); head !== null; head = reader.next()) {
          tell([head.method, head.target, ['host', 'range', 'accept-encoding', 'content-length'].map((field) => head?.header(field))]);
        }
        return 'open';
      };
    },
    () => [Buffer.from(HTTP), Buffer.from(HTTP.repeat(2))],
  ),
  cuts(
    'rtsp-cuts',
    'text',
    () => {
      const reader = new RtspReader();
      return (piece, tell) => {
        reader.push(piece, (item) => {
          const bytes = item.kind === 'response' ? item.body : item.kind === 'data' ? item.data : piece.subarray(0, 0);
          tell([{ ...item, body: null, data: null }, Buffer.from(bytes).toString('hex')]);
        });
        return 'open';
      };
    },
    () => [Buffer.from(RTSP, 'latin1'), Buffer.from(RTSP.repeat(2), 'latin1')],
  ),
  cuts(
    'ovt-cuts',
    'bytes',
    () => {
      const reader = new OvtReader({ message: 20_000, media: 20_000, anyType: false });
      return (piece, tell) => {
        reader.push(piece, (type, payload) => tell([type, Buffer.from(payload).toString('hex')]));
        return 'open';
      };
    },
    () => [
      Buffer.concat(
        packetsOf(recordedOvt('origin-ladder'))
          .slice(0, 6)
          .map(({ bytes }) => bytes),
      ),
    ],
  ),
  cuts(
    'ice-tcp-cuts',
    'bytes',
    () => {
      const framer = new TcpFramer();
      return (piece, tell) => {
        const frames = framer.push(piece);
        for (const frame of frames ?? []) tell(frame.toString('hex'));
        return frames === null ? REFUSED : 'open';
      };
    },
    () => [Buffer.concat([frameDatagram(Buffer.from('one')), frameDatagram(Buffer.alloc(0)), frameDatagram(Buffer.alloc(300, 7))])],
  ),
  cuts(
    'turn-cuts',
    'bytes',
    () => {
      const framer = new TurnFramer();
      return (piece, tell) => {
        for (const frame of framer.push(piece))
          tell([frame.kind, (frame.kind === 'channel' ? frame.datagram : frame.bytes).toString('hex')]);
        return 'open';
      };
    },
    () => [Buffer.concat([frameChannelData(0x4001, Buffer.from('media')), Buffer.from(`000100002112a442${'05'.repeat(12)}`, 'hex')])],
  ),
];
