/** SRT packets made by our own writers, to be parsed, and mutated by the fuzz tests. */
import {
  type ControlPacket,
  serializeAck,
  serializeAckAck,
  serializeDropRequest,
  serializeKeepAlive,
  serializeLightAck,
  serializeNak,
  serializeShutdown,
  serializeUserDefined,
} from '../../src/wire/srt/control-packet.ts';
import {
  ExtensionType,
  type Handshake,
  HandshakeType,
  serializeCapabilities,
  serializeTextExtension,
} from '../../src/wire/srt/handshake.ts';
import { SEQUENCE_MASK } from '../../src/wire/srt/sequence.ts';
import { SessionKeys } from '../../src/wire/srt/session-keys.ts';
import { capabilitiesFor, handshakeWith } from '../../src/wire/srt/terms.ts';

export const SRT_ADDRESS = { timestamp: 0x01_02_03_04, destination: 0x3a_bb_cc_dd };
export const SRT_PASSPHRASE = 'correct horse battery';
/** Figures of a full acknowledgement. */
export const SRT_REPORT = {
  rtt: 20_000,
  rttVariance: 3000,
  availableBuffer: 8000,
  receiveRate: 500,
  linkCapacity: 9000,
  receiveByteRate: 700_000,
};

const RANGES = [
  { first: 5, last: 5 },
  { first: SEQUENCE_MASK, last: 1 },
  { first: 3, last: 900 },
];
const GONE = { first: 8, last: 400 };
const KEYS = SessionKeys.generate(SRT_PASSPHRASE, 16).message();

interface Sample {
  readonly bytes: Uint8Array;
  /** The expected result of parsing. */
  readonly packet: ControlPacket;
}

/** A control packet of each kind except the handshake. */
export const SRT_CONTROL = {
  'keep-alive': { bytes: serializeKeepAlive(SRT_ADDRESS), packet: { type: 'keep-alive' } },
  'light acknowledgement': { bytes: serializeLightAck(77, SRT_ADDRESS), packet: { type: 'ack', number: 0, sequence: 77, report: null } },
  'full acknowledgement': {
    bytes: serializeAck(3, 78, SRT_REPORT, SRT_ADDRESS),
    packet: { type: 'ack', number: 3, sequence: 78, report: SRT_REPORT },
  },
  'answer to one': { bytes: serializeAckAck(3, SRT_ADDRESS), packet: { type: 'ack-ack', number: 3 } },
  'loss report': { bytes: serializeNak(RANGES, 1456, SRT_ADDRESS), packet: { type: 'nak', ranges: RANGES } },
  'drop request': { bytes: serializeDropRequest(4, GONE, SRT_ADDRESS), packet: { type: 'drop-request', message: 4, range: GONE } },
  'key material': {
    bytes: serializeUserDefined(ExtensionType.KEY_REQUEST, KEYS, SRT_ADDRESS),
    packet: { type: 'user-defined', subtype: ExtensionType.KEY_REQUEST, content: KEYS },
  },
  shutdown: { bytes: serializeShutdown(SRT_ADDRESS), packet: { type: 'shutdown' } },
} as const satisfies Readonly<Record<string, Sample>>;

/** Capabilities of every caller. */
export const SRT_ABILITIES = {
  type: ExtensionType.HANDSHAKE_REQUEST,
  content: serializeCapabilities(capabilitiesFor({ receive: 120, peer: 200 })),
};

/** The handshake by which a caller requests a stream. */
export function srtConclusion(fields: Partial<Handshake> = {}): Handshake {
  return handshakeWith({
    type: HandshakeType.CONCLUSION,
    socketId: 4711,
    cookie: 0xff_00_ff_00,
    initialSequence: 99,
    extensionField: 5,
    extensions: [SRT_ABILITIES, { type: ExtensionType.STREAM_ID, content: serializeTextExtension('default/app/straße') }],
    ...fields,
  });
}
