import { describe, expect, it } from 'vitest';
import { Attention } from './attention.ts';

/** A thread nobody has asked for long enough, and what it told the main thread. */
function resting() {
  const told: boolean[] = [];
  const attention = new Attention((wanted) => told.push(wanted));
  for (let report = 0; report < 4; report += 1) attention.look(0, 0);
  return { attention, told };
}

describe('the attention of a delivery thread', () => {
  it('is given up once, after some reports without a connection', () => {
    const { attention, told } = resting();
    attention.look(0, 0);
    expect([attention.current, told]).toEqual([false, [false]]);
  });

  it('stays while connections are open, or came and went between two reports', () => {
    const told: boolean[] = [];
    const attention = new Attention((wanted) => told.push(wanted));
    for (let report = 0; report < 20; report += 1) attention.look(1, 1);
    for (let report = 0; report < 20; report += 1) attention.look(0, 2 + report);
    expect([attention.current, told]).toEqual([true, []]);
  });

  it('is asked for once, however many wait', () => {
    const { attention, told } = resting();
    const answered: string[] = [];
    attention.wait(() => answered.push('one'));
    attention.wait(() => answered.push('two'));
    expect([told, answered]).toEqual([[false, true], []]);
    attention.caughtUp();
    expect([attention.current, answered]).toEqual([true, ['one', 'two']]);
  });

  it('forgets who left while waiting', () => {
    const { attention, told } = resting();
    const answered: string[] = [];
    attention.wait(() => answered.push('gone'))();
    attention.wait(() => answered.push('here'));
    attention.caughtUp();
    attention.caughtUp();
    expect([answered, told]).toEqual([['here'], [false, true, true]]);
  });
});
