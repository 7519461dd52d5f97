import { expect, it } from 'vitest';
import { buildCue } from '../containers/markers/cue.ts';
import { SourceBreaks } from './source-breaks.ts';

/** A time_signal whose descriptor identifies content. */
const IDENTIFICATION = Buffer.from('fc302700000000000000fff00506fe000000100011020f43554549000000077fbf000001000072484fca', 'hex');

it('passes a splice that is no break, and has no end to send for it', () => {
  const breaks = new SourceBreaks();
  expect(breaks.admits({ format: 'scte35', data: IDENTIFICATION })).toBe(true);
  expect(breaks.end(1)).toEqual([]);
});

it('ends a break that was announced in its middle', () => {
  const breaks = new SourceBreaks();
  expect(breaks.admits({ format: 'cue', data: buildCue({ type: 'cont', duration: 9000, elapsed: 1000 }) })).toBe(true);
  expect(breaks.end(1)).toEqual([
    { format: 'cue', target: 'all', data: buildCue({ type: 'in', duration: 0, elapsed: 0 }), at: 1, settled: true },
  ]);
});

it('finds no break in other events and in malformed cues', () => {
  const breaks = new SourceBreaks();
  expect(breaks.admits({ format: 'id3v2', data: Buffer.from('ID3') })).toBe(false);
  expect(breaks.admits({ format: 'cue', data: Buffer.from('x') })).toBe(false);
});
