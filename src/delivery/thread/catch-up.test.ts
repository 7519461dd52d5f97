import { describe, expect, it } from 'vitest';
import { CatchUp } from './catch-up.ts';

/** A thread without requests for long enough, and its messages to the main thread. */
function resting() {
  const told: boolean[] = [];
  const catchUp = new CatchUp((wanted) => told.push(wanted));
  for (let report = 0; report < 4; report += 1) catchUp.look(0, 0);
  return { catchUp, told };
}

describe('the attention of a delivery thread', () => {
  it('ends once, after some reports without a connection', () => {
    const { catchUp, told } = resting();
    catchUp.look(0, 0);
    expect([catchUp.current, told]).toEqual([false, [false]]);
  });

  it('stays while connections are open, or were opened and closed between two reports', () => {
    const told: boolean[] = [];
    const catchUp = new CatchUp((wanted) => told.push(wanted));
    for (let report = 0; report < 20; report += 1) catchUp.look(1, 1);
    for (let report = 0; report < 20; report += 1) catchUp.look(0, 2 + report);
    expect([catchUp.current, told]).toEqual([true, []]);
  });

  it('is requested once for any number of waiting callers', () => {
    const { catchUp, told } = resting();
    const answered: string[] = [];
    catchUp.wait(() => answered.push('one'));
    catchUp.wait(() => answered.push('two'));
    expect([told, answered]).toEqual([[false, true], []]);
    catchUp.caughtUp();
    expect([catchUp.current, answered]).toEqual([true, ['one', 'two']]);
  });

  it('forgets callers that leave while they wait', () => {
    const { catchUp, told } = resting();
    const answered: string[] = [];
    catchUp.wait(() => answered.push('gone'))();
    catchUp.wait(() => answered.push('here'));
    catchUp.caughtUp();
    catchUp.caughtUp();
    expect([answered, told]).toEqual([['here'], [false, true, true]]);
  });
});
