/** CMAF header of one track: ftyp + moov without samples (ISO/IEC 14496-12 §8.2, ISO/IEC 23000-19 §7.3). */
import type { AudioTrack, VideoTrack } from '../../media/track.ts';
import { BoxWriter } from './box-writer.ts';
import { writeAudioSampleEntry, writeVideoSampleEntry } from './sample-entry.ts';

const COMPATIBLE_BRANDS = ['iso6', 'cmfc', 'cmf2', 'mp41'] as const;
const FIXED_1_0 = 0x0001_0000;
const IDENTITY_MATRIX = [FIXED_1_0, 0, 0, 0, FIXED_1_0, 0, 0, 0, 0x4000_0000] as const;
/** Enabled, in movie, in preview. */
const TRACK_FLAGS = 0x07;
const SELF_CONTAINED = 0x01;
const FULL_VOLUME = 0x0100;

/** Builds the init segment of `track`; `timescale` is that of its fragments. The track's id in the file is `trackId`. */
export function buildInitSegment(track: VideoTrack | AudioTrack, options: { timescale: number; trackId: number }): Uint8Array {
  const writer = new BoxWriter();
  const ftyp = writer.box('ftyp');
  writer.fourCc(COMPATIBLE_BRANDS[0]);
  writer.u32(0);
  for (const brand of COMPATIBLE_BRANDS) writer.fourCc(brand);
  writer.end(ftyp);

  const moov = writer.box('moov');
  writeMovieHeader(writer, options.timescale, options.trackId);
  const trak = writer.box('trak');
  writeTrackHeader(writer, track, options.trackId);
  const mdia = writer.box('mdia');
  writeMediaHeader(writer, track, options.timescale);
  writeHandler(writer, track);
  writeMediaInformation(writer, track);
  writer.end(mdia);
  writer.end(trak);
  writeMovieExtends(writer, options.trackId);
  writer.end(moov);
  return writer.copy();
}

function writeMovieHeader(writer: BoxWriter, timescale: number, trackId: number): void {
  const mvhd = writer.fullBox('mvhd', 0, 0);
  writer.zeros(8);
  writer.u32(timescale);
  writer.u32(0);
  writer.u32(FIXED_1_0);
  writer.u16(FULL_VOLUME);
  writer.zeros(10);
  for (const value of IDENTITY_MATRIX) writer.u32(value);
  writer.zeros(24);
  writer.u32(trackId + 1);
  writer.end(mvhd);
}

function writeTrackHeader(writer: BoxWriter, track: VideoTrack | AudioTrack, trackId: number): void {
  const tkhd = writer.fullBox('tkhd', 0, TRACK_FLAGS);
  writer.zeros(8);
  writer.u32(trackId);
  writer.zeros(4 + 4 + 8);
  writer.u16(0);
  writer.u16(0);
  writer.u16(track.type === 'audio' ? FULL_VOLUME : 0);
  writer.u16(0);
  for (const value of IDENTITY_MATRIX) writer.u32(value);
  writer.u32(track.type === 'video' ? track.width * FIXED_1_0 : 0);
  writer.u32(track.type === 'video' ? track.height * FIXED_1_0 : 0);
  writer.end(tkhd);
}

function writeMediaHeader(writer: BoxWriter, track: VideoTrack | AudioTrack, timescale: number): void {
  const mdhd = writer.fullBox('mdhd', 0, 0);
  writer.zeros(8);
  writer.u32(timescale);
  writer.u32(0);
  writer.u16(packedLanguage(track.language));
  writer.u16(0);
  writer.end(mdhd);
}

/** ISO 639-2/T code in three groups of five bits; `und` for anything longer or shorter. */
function packedLanguage(language: string): number {
  const code = /^[a-z]{3}$/.test(language) ? language : 'und';
  let packed = 0;
  for (let i = 0; i < code.length; i++) packed = (packed << 5) | (code.charCodeAt(i) - 0x60);
  return packed;
}

function writeHandler(writer: BoxWriter, track: VideoTrack | AudioTrack): void {
  const hdlr = writer.fullBox('hdlr', 0, 0);
  writer.u32(0);
  writer.fourCc(track.type === 'video' ? 'vide' : 'soun');
  writer.zeros(12);
  writer.ascii(track.type === 'video' ? 'VideoHandler\0' : 'SoundHandler\0');
  writer.end(hdlr);
}

function writeMediaInformation(writer: BoxWriter, track: VideoTrack | AudioTrack): void {
  const minf = writer.box('minf');
  const header = track.type === 'video' ? writer.fullBox('vmhd', 0, 1) : writer.fullBox('smhd', 0, 0);
  writer.zeros(track.type === 'video' ? 8 : 4);
  writer.end(header);

  const dinf = writer.box('dinf');
  const dref = writer.fullBox('dref', 0, 0);
  writer.u32(1);
  writer.end(writer.fullBox('url ', 0, SELF_CONTAINED));
  writer.end(dref);
  writer.end(dinf);

  const stbl = writer.box('stbl');
  const stsd = writer.fullBox('stsd', 0, 0);
  writer.u32(1);
  if (track.type === 'video') writeVideoSampleEntry(writer, track);
  else writeAudioSampleEntry(writer, track);
  writer.end(stsd);
  for (const table of ['stts', 'stsc', 'stco']) {
    const box = writer.fullBox(table, 0, 0);
    writer.u32(0);
    writer.end(box);
  }
  const stsz = writer.fullBox('stsz', 0, 0);
  writer.zeros(8);
  writer.end(stsz);
  writer.end(stbl);
  writer.end(minf);
}

function writeMovieExtends(writer: BoxWriter, trackId: number): void {
  const mvex = writer.box('mvex');
  const trex = writer.fullBox('trex', 0, 0);
  writer.u32(trackId);
  writer.u32(1);
  writer.zeros(12);
  writer.end(trex);
  writer.end(mvex);
}
