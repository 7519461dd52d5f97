/** RTP header extensions that senders to browsers write (RFC 8285, one-byte form). */
export const ExtensionUri = {
  ABS_SEND_TIME: 'http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time',
  MID: 'urn:ietf:params:rtp-hdrext:sdes:mid',
  REPAIRED_RID: 'urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id',
  RID: 'urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id',
  PLAYOUT_DELAY: 'http://www.webrtc.org/experiments/rtp-hdrext/playout-delay',
  TRANSPORT_CC: 'http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01',
} as const;
/** Any of these URIs. */
export type ExtensionUri = (typeof ExtensionUri)[keyof typeof ExtensionUri];

const PROFILE = [0xbe, 0xde] as const;
const HEAD = 4;
/** Unit of playout delays on the wire, ms. */
const PLAYOUT_UNIT_MS = 10;
const MAX_PLAYOUT = 0xfff;

/** The extensions of a stream, with the ids that its peer announced. */
export interface ExtensionIds {
  readonly absSendTime?: number | undefined;
  readonly transportCc?: number | undefined;
  readonly playoutDelay?: { readonly id: number; readonly minMs: number; readonly maxMs: number } | undefined;
  /** The m-line of the stream (RFC 9143 section 15); at most `MAX_MID_LENGTH` characters. */
  readonly mid?: { readonly id: number; readonly value: string } | undefined;
}

/** Longest value of the one-byte form. */
export const MAX_MID_LENGTH = 16;

/** A block, with the byte offsets of the fields that change from packet to packet. */
export interface ExtensionBlock {
  /** With its head, padded to words; empty when there is no extension. */
  readonly bytes: Uint8Array;
  /** Where the sender writes 3 bytes of send time and 2 bytes of sequence number; 0 when absent. */
  readonly sendTimeAt: number;
  readonly transportSequenceAt: number;
}

/** The extension block at the beginning of every packet of a stream. */
export function buildExtensions({ absSendTime, transportCc, playoutDelay, mid }: ExtensionIds): ExtensionBlock {
  const bytes: number[] = [...PROFILE, 0, 0];
  let sendTimeAt = 0;
  let transportSequenceAt = 0;
  const element = (id: number, length: number): number => {
    bytes.push((id << 4) | (length - 1));
    const at = bytes.length;
    for (let n = 0; n < length; n += 1) bytes.push(0);
    return at;
  };
  if (absSendTime !== undefined) sendTimeAt = element(absSendTime, 3);
  if (transportCc !== undefined) transportSequenceAt = element(transportCc, 2);
  if (playoutDelay !== undefined) {
    const at = element(playoutDelay.id, 3);
    const units = (ms: number): number => Math.min(MAX_PLAYOUT, Math.round(ms / PLAYOUT_UNIT_MS));
    const both = units(playoutDelay.minMs) * 0x1000 + units(playoutDelay.maxMs);
    bytes.splice(at, 3, both >> 16, (both >> 8) & 0xff, both & 0xff);
  }
  if (mid !== undefined) {
    const value = Buffer.from(mid.value);
    bytes.splice(element(mid.id, value.length), value.length, ...value);
  }
  if (bytes.length === HEAD) return { bytes: new Uint8Array(0), sendTimeAt: 0, transportSequenceAt: 0 };
  while (bytes.length % 4 !== 0) bytes.push(0);
  bytes[3] = bytes.length / 4 - 1;
  return { bytes: Uint8Array.from(bytes), sendTimeAt, transportSequenceAt };
}
