/** Reads FLV files tag by tag, as publishers send them. */
import { readFileSync } from 'node:fs';

/** One tag of an FLV file. */
export interface FlvTag {
  /** 8 audio, 9 video, 18 script data; equal to the RTMP message type. */
  readonly type: number;
  /** Milliseconds. */
  readonly timestamp: number;
  readonly data: Buffer;
}

const FLV_AUDIO = 8;
const FLV_VIDEO = 9;
const FLV_HEADER = 9;
const FLV_TAG_HEADER = 11;
const FLV_PREVIOUS_SIZE = 4;

export function readFlv(file: string): readonly FlvTag[] {
  const bytes = readFileSync(file);
  const tags: FlvTag[] = [];
  let at = FLV_HEADER + FLV_PREVIOUS_SIZE;
  while (at + FLV_TAG_HEADER <= bytes.length) {
    const size = bytes.readUIntBE(at + 1, 3);
    const timestamp = bytes.readUIntBE(at + 4, 3) + bytes.readUInt8(at + 7) * 2 ** 24;
    tags.push({ type: bytes.readUInt8(at), timestamp, data: bytes.subarray(at + FLV_TAG_HEADER, at + FLV_TAG_HEADER + size) });
    at += FLV_TAG_HEADER + size + FLV_PREVIOUS_SIZE;
  }
  return tags;
}

/** True for frames; sequence headers and AAC configurations are no frames. */
export function isAudioFrame(tag: FlvTag): boolean {
  return tag.type === FLV_AUDIO && tag.data[1] === 1;
}

export function isVideoFrame(tag: FlvTag): boolean {
  return tag.type === FLV_VIDEO && tag.data[1] === 1;
}
