/** moov of one or several tracks (ISO/IEC 14496-12 §8.2), with empty sample tables: the samples follow in fragments. */
import type { AudioTrack, VideoTrack } from '../../media/track.ts';
import type { BoxWriter } from './box-writer.ts';
import { writeAudioSampleEntry, writeVideoSampleEntry } from './sample-entry.ts';

const FIXED_1_0 = 0x0001_0000;
const IDENTITY_MATRIX = [FIXED_1_0, 0, 0, 0, FIXED_1_0, 0, 0, 0, 0x4000_0000] as const;
/** Enabled, in movie, in preview. */
const TRACK_FLAGS = 0x07;
const SELF_CONTAINED = 0x01;
const FULL_VOLUME = 0x0100;

/** One trak; the times of its samples are in the fragments that follow. */
export interface MovieTrack {
  readonly track: VideoTrack | AudioTrack;
  /** Id of the track inside the file, from 1. */
  readonly trackId: number;
  /** Timescale of the track's fragments. */
  readonly timescale: number;
  /** Media time at which the presentation begins (an edit list of one entry, §8.6.6); absent: no edit list. */
  readonly editMediaTime?: number;
}

/** The fields of the whole movie; `timescale` is that of mvhd. */
export interface MovieOptions {
  readonly timescale: number;
  /** Version 1 headers: durations of 64 bits, for files that may become longer than 13 hours at 90 kHz. */
  readonly longDurations?: boolean;
}

/** Appends moov with mvex. */
export function writeMovieBox(writer: BoxWriter, tracks: readonly MovieTrack[], options: MovieOptions): void {
  const version = options.longDurations === true ? 1 : 0;
  const moov = writer.box('moov');
  writeMovieHeader(writer, version, options.timescale, Math.max(0, ...tracks.map(({ trackId }) => trackId)) + 1);
  for (const each of tracks) writeTrackBox(writer, version, each);
  const mvex = writer.box('mvex');
  for (const { trackId } of tracks) writeTrackExtends(writer, trackId);
  writer.end(mvex);
  writer.end(moov);
}

function writeTrackBox(writer: BoxWriter, version: 0 | 1, each: MovieTrack): void {
  const trak = writer.box('trak');
  writeTrackHeader(writer, version, each.track, each.trackId);
  if (each.editMediaTime !== undefined) writeEditList(writer, [{ duration: 0, mediaTime: each.editMediaTime }]);
  const mdia = writer.box('mdia');
  writeMediaHeader(writer, version, each.track, each.timescale);
  writeHandler(writer, each.track);
  writeMediaInformation(writer, each.track);
  writer.end(mdia);
  writer.end(trak);
}

/** Creation and modification time, unset. */
function writeTimes(writer: BoxWriter, version: 0 | 1): void {
  writer.zeros(version === 1 ? 16 : 8);
}

/** An unknown duration. */
function writeNoDuration(writer: BoxWriter, version: 0 | 1): void {
  writer.zeros(version === 1 ? 8 : 4);
}

/** One entry of an edit list: `duration` in the timescale of the movie, `mediaTime` in that of the track, −1 for an empty edit. */
export interface Edit {
  readonly duration: number;
  readonly mediaTime: number;
}

/** Appends edts with a version 1 elst (§8.6.6). */
export function writeEditList(writer: BoxWriter, edits: readonly Edit[]): void {
  const edts = writer.box('edts');
  const elst = writer.fullBox('elst', 1, 0);
  writer.u32(edits.length);
  for (const { duration, mediaTime } of edits) {
    writer.u64(duration);
    if (mediaTime < 0) {
      writer.u32(0xffff_ffff);
      writer.u32(0xffff_ffff);
    } else {
      writer.u64(mediaTime);
    }
    writer.u32(FIXED_1_0);
  }
  writer.end(elst);
  writer.end(edts);
}

function writeMovieHeader(writer: BoxWriter, version: 0 | 1, timescale: number, nextTrackId: number): void {
  const mvhd = writer.fullBox('mvhd', version, 0);
  writeTimes(writer, version);
  writer.u32(timescale);
  writeNoDuration(writer, version);
  writer.u32(FIXED_1_0);
  writer.u16(FULL_VOLUME);
  writer.zeros(10);
  for (const value of IDENTITY_MATRIX) writer.u32(value);
  writer.zeros(24);
  writer.u32(nextTrackId);
  writer.end(mvhd);
}

function writeTrackHeader(writer: BoxWriter, version: 0 | 1, track: VideoTrack | AudioTrack, trackId: number): void {
  const tkhd = writer.fullBox('tkhd', version, TRACK_FLAGS);
  writeTimes(writer, version);
  writer.u32(trackId);
  writer.zeros(4);
  writeNoDuration(writer, version);
  writer.zeros(8);
  writer.u16(0);
  writer.u16(0);
  writer.u16(track.type === 'audio' ? FULL_VOLUME : 0);
  writer.u16(0);
  for (const value of IDENTITY_MATRIX) writer.u32(value);
  writer.u32(track.type === 'video' ? track.width * FIXED_1_0 : 0);
  writer.u32(track.type === 'video' ? track.height * FIXED_1_0 : 0);
  writer.end(tkhd);
}

function writeMediaHeader(writer: BoxWriter, version: 0 | 1, track: VideoTrack | AudioTrack, timescale: number): void {
  const mdhd = writer.fullBox('mdhd', version, 0);
  writeTimes(writer, version);
  writer.u32(timescale);
  writeNoDuration(writer, version);
  writer.u16(packedLanguage(track.language));
  writer.u16(0);
  writer.end(mdhd);
}

/** ISO 639-2/T code in three groups of five bits; `und` for any other text. */
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

function writeTrackExtends(writer: BoxWriter, trackId: number): void {
  const trex = writer.fullBox('trex', 0, 0);
  writer.u32(trackId);
  writer.u32(1);
  writer.zeros(12);
  writer.end(trex);
}
