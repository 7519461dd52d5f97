import { describe, expect, it } from 'vitest';
import { dataTrack } from '../../../../test/fakes/synthetic-media.ts';
import { buildCue } from '../../../containers/markers/cue.ts';
import { buildSpliceInsert, parseSplice } from '../../../containers/markers/splice-info.ts';
import type { Packet } from '../../../media/packet.ts';
import { MILLISECONDS } from '../../../media/timebase.ts';
import type { EventFormat } from '../../../media/timed-event.ts';
import { serializeProgramDateTime } from '../../../playlist/media-tags.ts';
import { BreakMarkers } from './break-markers.ts';

const track = { ...dataTrack(2), timebase: MILLISECONDS };
const EPOCH = Date.UTC(2026, 0, 1);

function marker(pts: number, format: EventFormat, data: Uint8Array): Packet {
  return { track, pts, dts: pts, duration: 0, keyframe: true, data, event: { format, target: 'all' } };
}

const cue = (pts: number, type: 'out' | 'in' | 'cont', duration = 0, elapsed = 0): Packet =>
  marker(pts, 'cue', buildCue({ type, duration, elapsed }));
const splice = (pts: number, id: number, type: 'out' | 'in', duration: number | null = null): Packet =>
  marker(pts, 'scte35', buildSpliceInsert({ id, type, time: 0, duration, autoReturn: false }));

/** A time_signal whose descriptor identifies content: it neither begins nor ends anything. */
const IDENTIFICATION = Buffer.from('fc302700000000000000fff00506fe000000100011020f43554549000000077fbf000001000072484fca', 'hex');

const startOf = (line: string): string => /START-DATE="[^"]*"/.exec(line)?.[0] ?? '';

describe('BreakMarkers', () => {
  it('writes no tags without markers', () => {
    const markers = new BreakMarkers();
    expect([markers.next, markers.take(1000, EPOCH)]).toEqual([Number.POSITIVE_INFINITY, '']);
  });

  it('writes the elapsed time of a break at each segment', () => {
    const markers = new BreakMarkers();
    markers.push(cue(2000, 'out', 60_500));
    markers.push(cue(8000, 'in'));
    const times = [0, 1995, 4000, 6000, 8000, 10_000];
    expect(times.map((time) => markers.take(time, EPOCH + time))).toEqual([
      '',
      '#EXT-X-CUE-OUT:DURATION=60.500\n',
      '#EXT-X-CUE-OUT-CONT:ElapsedTime=2.005,Duration=60.500\n',
      '#EXT-X-CUE-OUT-CONT:ElapsedTime=4.005,Duration=60.500\n',
      '#EXT-X-CUE-IN\n',
      '',
    ]);
  });

  it('writes a splice that is no break with the time of its segment, and cuts for it', () => {
    const markers = new BreakMarkers();
    markers.push(marker(2000, 'scte35', IDENTIFICATION));
    expect(markers.next).toBeLessThanOrEqual(2000);
    const line = markers.take(2000, EPOCH + 2000);
    expect(line).toMatch(/^#EXT-X-DATERANGE:ID="7",START-DATE="[^"]+",SCTE35-CMD=0x[0-9A-F]+\n$/);
    const section = Buffer.from(/0x([0-9A-F]+)/.exec(line)?.[1] ?? '', 'hex');
    expect(parseSplice(section)).toMatchObject({ id: 7, type: 'other', time: 180_000 });
    expect(markers.take(4000, EPOCH + 4000)).toBe('');
  });

  it('ends a break whose end got lost, and no break without a duration', () => {
    const markers = new BreakMarkers();
    markers.push(cue(0, 'out', 10_000));
    const lines = [0, 10_000, 25_000, 26_000, 28_000].map((time) => markers.take(time, EPOCH + time));
    expect(lines).toEqual([
      '#EXT-X-CUE-OUT:DURATION=10.000\n',
      '#EXT-X-CUE-OUT-CONT:ElapsedTime=10.000,Duration=10.000\n',
      '#EXT-X-CUE-OUT-CONT:ElapsedTime=25.000,Duration=10.000\n',
      '#EXT-X-CUE-IN\n',
      '',
    ]);
    markers.push(cue(30_000, 'out'));
    expect([markers.take(30_000, EPOCH), markers.take(9_000_000, EPOCH)]).toEqual([
      '#EXT-X-CUE-OUT\n',
      '#EXT-X-CUE-OUT-CONT:ElapsedTime=8970.000\n',
    ]);
  });

  it('joins a break in its middle, and accepts a break without a duration', () => {
    const markers = new BreakMarkers();
    markers.push(cue(1000, 'cont', 30_000, 12_000));
    // A marker within a break does not cut segments.
    expect(markers.next).toBe(Number.POSITIVE_INFINITY);
    expect([2000, 4000].map((time) => markers.take(time, EPOCH))).toEqual([
      '#EXT-X-CUE-OUT-CONT:ElapsedTime=12.000,Duration=30.000\n',
      '#EXT-X-CUE-OUT-CONT:ElapsedTime=14.000,Duration=30.000\n',
    ]);
    markers.push(cue(5000, 'out'));
    expect([markers.take(5000, EPOCH), markers.take(6000, EPOCH)]).toEqual(['#EXT-X-CUE-OUT\n', '#EXT-X-CUE-OUT-CONT:ElapsedTime=1.000\n']);
  });

  it('gives both ends of a splice the same start date, and their sections the time of the cut', () => {
    const markers = new BreakMarkers();
    markers.push(splice(2000, 7, 'out', 450_000));
    const out = markers.take(2010, EPOCH + 2010);
    markers.push(splice(7000, 7, 'in'));
    const back = markers.take(7000, EPOCH + 7000);
    const start = /START-DATE="([^"]+)"/.exec(out)?.[1] ?? '';
    expect(Date.parse(start)).toBe(EPOCH + 2010);
    expect(out).toMatch(/^#EXT-X-DATERANGE:ID="7",START-DATE="[^"]+",PLANNED-DURATION=5\.000,SCTE35-OUT=0x[0-9A-F]+\n$/);
    expect(back).toMatch(new RegExp(`^#EXT-X-DATERANGE:ID="7",START-DATE="${start.replace('+', '\\+')}",SCTE35-IN=0x[0-9A-F]+\\n$`));
    const sectionOf = (line: string) => parseSplice(new Uint8Array(Buffer.from(/=0x([0-9A-F]+)/.exec(line)?.[1] ?? '', 'hex')));
    expect([sectionOf(out)?.time, sectionOf(back)?.time]).toEqual([2010 * 90, 7000 * 90]);
  });

  it('lists simultaneous markers in order of time, and asks for the earliest cut', () => {
    const markers = new BreakMarkers();
    markers.push(cue(3000, 'in'));
    markers.push(splice(2000, 1, 'out'));
    expect(markers.next).toBe(1980);
    expect(
      markers
        .take(3000, EPOCH)
        .split('\n')
        .map((line) => line.split(':')[0]),
    ).toEqual(['#EXT-X-DATERANGE', '#EXT-X-CUE-IN', '']);
  });

  it('uses the elapsed time that the source sends', () => {
    const markers = new BreakMarkers();
    markers.push(cue(0, 'out', 60_000));
    markers.take(0, EPOCH);
    markers.push(cue(2000, 'cont', 60_000, 30_000));
    markers.push(cue(4000, 'cont'));
    expect([2000, 4000].map((time) => markers.take(time, EPOCH))).toEqual([
      '#EXT-X-CUE-OUT-CONT:ElapsedTime=30.000,Duration=60.000\n',
      '#EXT-X-CUE-OUT-CONT:ElapsedTime=4.000,Duration=60.000\n',
    ]);
  });

  it('remembers the start of the 64 newest splices, and writes the end of older ones without it', () => {
    const markers = new BreakMarkers();
    const begin = (id: number): string => {
      markers.push(splice(id * 1000, id, 'out'));
      return startOf(markers.take(id * 1000, EPOCH + id * 1000));
    };
    const end = (id: number): string => {
      markers.push(splice(900_000, id, 'in'));
      return startOf(markers.take(900_000, EPOCH + 900_000));
    };
    const begun = Array.from({ length: 70 }, (_, id) => begin(id));
    expect([end(6), end(69)]).toEqual([begun[6], begun[69]]);
    const now = serializeProgramDateTime(EPOCH + 900_000)
      .trim()
      .replace('#EXT-X-PROGRAM-DATE-TIME:', '');
    expect([end(0), end(5)]).toEqual([0, 5].map(() => `START-DATE="${now}"`));
  });

  it('drops the oldest of more than 32 markers, and skips events that are no markers', () => {
    const markers = new BreakMarkers();
    for (let id = 0; id < 40; id += 1) markers.push(splice(1000 + id, id, 'out'));
    markers.push(marker(0, 'cue', Buffer.from('bad')));
    markers.push(marker(0, 'id3v2', Buffer.from('ID3')));
    expect([markers.dropped, markers.take(9000, EPOCH).split('\n').length]).toEqual([8, 33]);
  });
});
