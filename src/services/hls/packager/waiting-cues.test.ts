import { describe, expect, it } from 'vitest';
import { cuePacket, subtitleTrack } from '../../../../test/fakes/synthetic-media.ts';
import { WaitingCues } from './waiting-cues.ts';

const track = subtitleTrack();
const textsOf = (file: Buffer): string[] =>
  file
    .toString()
    .trimEnd()
    .split('\n\n')
    .slice(1)
    .map((cue) => cue.split('\n')[2] ?? '');

describe('cues that wait', () => {
  it('are written in order of their times, not of their arrival', () => {
    const cues = new WaitingCues(() => 0);
    for (const start of [3000, 1000, 2000]) cues.push(cuePacket(track, [start, start + 500], `${start}`));
    expect(textsOf(cues.write(0, 4000))).toEqual(['1000', '2000', '3000']);
  });

  it('are dropped when they have ended or have no text', () => {
    const cues = new WaitingCues(() => 0);
    cues.write(0, 4000);
    cues.push(cuePacket(track, [3000, 4000], 'too late'));
    cues.push(cuePacket(track, [5000, 6000], ''));
    expect(cues.dropped).toBe(2);
    cues.push(cuePacket(track, [3000, 4001], 'still on'));
    expect([cues.dropped, textsOf(cues.write(4000, 8000))]).toEqual([2, ['still on']]);
  });

  it('are bounded by their characters, and forgotten cues make room for new ones', () => {
    const cues = new WaitingCues(() => 0);
    const fill = (from: number, texts: number): void => {
      for (let n = 0; n < texts; n += 1) cues.push(cuePacket(track, [from, from + 1000], 'x'.repeat(4096)));
    };
    fill(0, 20);
    expect([cues.dropped, textsOf(cues.write(0, 1000)).length]).toEqual([4, 16]);
    cues.forget(1000);
    fill(2000, 16);
    expect([cues.dropped, textsOf(cues.write(2000, 3000)).length]).toEqual([4, 16]);
  });
});
