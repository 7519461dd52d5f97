/** Reads moov (ISO/IEC 14496-12 §8.2): the tracks of a foreign file. */
import { ProtocolError } from '../../util/protocol-error.ts';
import { type Box, bodyView, findBox, readBoxes } from './box-reader.ts';
import type { SampleDefaults } from './fragment-reader.ts';
import { type ReadSampleTables, readSampleTables } from './sample-cursor.ts';
import { type DescriptionEntry, readSampleDescription } from './sample-description.ts';

const UNDETERMINED = 'und';
/** Limit of tracks; real files have a few. */
const MAX_TRACKS = 64;

/** A trak with video or audio, unchanged. `tables` locate the samples outside of fragments. */
export interface TrakBox {
  /** Number of the track inside the file. */
  readonly trackId: number;
  readonly timescale: number;
  readonly description: DescriptionEntry;
  /** ISO 639-2; empty if the file does not say. */
  readonly language: string;
  /** Ticks to add to the times of samples, so that the presentation begins at 0 (edit list, §8.6.6). */
  readonly shift: number;
  readonly tables: ReadSampleTables;
}

/** A moov with its video and audio tracks, including unplayable tracks. `defaults` are those of trex (§8.8.3) by track id. */
export interface FileMovie {
  readonly tracks: readonly TrakBox[];
  /** More samples follow in fragments (moof boxes). */
  readonly fragmented: boolean;
  readonly defaults: ReadonlyMap<number, SampleDefaults>;
}

/**
 * Reads moov (`body` without its header). Video, audio and unsupported tracks of both; other tracks are left out. Throws `ProtocolError`.
 */
export function readMovie(body: Uint8Array): FileMovie {
  const boxes = readBoxes(body);
  const header = boxes.find(({ type }) => type === 'mvhd');
  const timescale = header === undefined ? 0 : timescaleOf(header);
  const traks = boxes.filter(({ type }) => type === 'trak');
  if (traks.length > MAX_TRACKS) throw new ProtocolError('ISOBMFF_MOVIE', `${traks.length} tracks, at most ${MAX_TRACKS} expected`);
  const mvex = boxes.find(({ type }) => type === 'mvex');
  const extended = mvex === undefined ? [] : readBoxes(mvex.body).filter(({ type }) => type === 'trex');
  return {
    tracks: traks.flatMap((trak) => readTrack(trak, timescale) ?? []),
    fragmented: mvex !== undefined,
    defaults: new Map(extended.map(readTrackExtends)),
  };
}

function readTrack(trak: Box, movieTimescale: number): TrakBox | null {
  const handler = findBox(trak.body, ['mdia', 'hdlr'])?.body;
  const kind = handler === undefined ? '' : String.fromCharCode(...handler.subarray(8, 12));
  if (kind !== 'vide' && kind !== 'soun') return null;
  const header = required(trak, ['tkhd']);
  const media = required(trak, ['mdia', 'mdhd']);
  const table = required(trak, ['mdia', 'minf', 'stbl']);
  const timescale = timescaleOf(media);
  const wide = header.body[0] === 1;
  return {
    trackId: bodyView(header, wide ? 24 : 16).getUint32(wide ? 20 : 12),
    timescale,
    description: readSampleDescription(required(table, ['stsd']).body),
    language: languageOf(media),
    shift: shiftOf(findBox(trak.body, ['edts', 'elst']), timescale, movieTimescale),
    tables: readSampleTables(table.body),
  };
}

/** The timescale in mvhd or mdhd. */
function timescaleOf(header: Box): number {
  const wide = header.body[0] === 1;
  const timescale = bodyView(header, wide ? 24 : 16).getUint32(wide ? 20 : 12);
  if (timescale === 0) throw new ProtocolError('ISOBMFF_MOVIE', `${header.type} with a timescale of 0`, header.offset);
  return timescale;
}

function languageOf(mdhd: Box): string {
  const at = mdhd.body[0] === 1 ? 32 : 20;
  const packed = bodyView(mdhd, at + 2).getUint16(at);
  const text = String.fromCharCode(...[10, 5, 0].map((bit) => ((packed >> bit) & 0x1f) + 0x60));
  return /^[a-z]{3}$/.test(text) && text !== UNDETERMINED ? text : '';
}

/** The delay and the cut at the beginning, from the first edits; later edits are ignored. */
function shiftOf(elst: Box | null, timescale: number, movieTimescale: number): number {
  if (elst === null) return 0;
  const wide = elst.body[0] === 1;
  const width = wide ? 20 : 12;
  const view = bodyView(elst, 8);
  const count = view.getUint32(4);
  let delay = 0;
  for (let index = 0; index < count; index += 1) {
    const at = 8 + index * width;
    bodyView(elst, at + width);
    const duration = wide ? Number(view.getBigUint64(at)) : view.getUint32(at);
    const mediaTime = wide ? Number(view.getBigInt64(at + 8)) : view.getInt32(at + 4);
    if (mediaTime >= 0) return delay - mediaTime;
    if (movieTimescale > 0) delay += Math.round((duration * timescale) / movieTimescale);
  }
  return 0;
}

function readTrackExtends(trex: Box): [number, SampleDefaults] {
  const view = bodyView(trex, 24);
  return [view.getUint32(4), { duration: view.getUint32(12), size: view.getUint32(16), flags: view.getUint32(20) }];
}

function required(box: Box, path: readonly string[]): Box {
  const found = findBox(box.body, path);
  if (found === null) throw new ProtocolError('ISOBMFF_MOVIE', `${box.type} without ${path.join('/')}`, box.offset);
  return found;
}
