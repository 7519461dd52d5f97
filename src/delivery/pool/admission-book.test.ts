import { expect, test, vi } from 'vitest';
import { AdmissionBook } from './admission-book.ts';

const VIEWER = { outlet: 1, session: 's', remoteAddress: '192.0.2.1' };

/** A book, and what is told here of whom it has adopted. */
function start() {
  const ended: string[] = [];
  const onOver = vi.fn();
  const book = new AdmissionBook({ onOver, adopt: (record) => () => void ended.push(record) });
  const bind = (thread: number, ticket: number, session = `${thread}.${ticket}`, exists = true): { session: string } => {
    book.bind(thread, { ticket, record: `record of ${thread}.${ticket}` }, { sighting: { ...VIEWER, session }, exists });
    return { ...VIEWER, session };
  };
  return { book, bind, ended, onOver };
}

test('an admission ends once, with its session, and the thread that asked hears of it', () => {
  const { book, bind, onOver, ended } = start();
  bind(1, 7, 's');
  bind(1, 8, 't');
  bind(2, 7, 'u');
  expect(book.sessionOver({ ...VIEWER, outlet: 2 })).toBeUndefined();
  expect(onOver).not.toHaveBeenCalled();
  expect(book.takeOver().size).toBe(0);
  const records = ['s', 't', 'u', 's', 'nobody'].map((session) => book.sessionOver({ ...VIEWER, session }));
  expect(records).toEqual(['record of 1.7', 'record of 1.8', 'record of 2.7', undefined, undefined]);
  expect([...book.takeOver()]).toEqual([
    [1, [7, 8]],
    [2, [7]],
  ]);
  expect(book.takeOver().size).toBe(0);
  expect([book.size, ended]).toEqual([0, []]);
});

test('one whose stream had ended when its thread told of it is over', () => {
  const { book, bind } = start();
  bind(1, 7, 's', false);
  expect([...book.takeOver()]).toEqual([[1, [7]]]);
  expect(book.size).toBe(0);
});

test('when a thread is gone its sessions may go on in others, and their ends are told here', () => {
  const { book, bind, ended } = start();
  const [first, second] = [bind(1, 1), bind(2, 1)];
  book.threadGone(1);
  book.threadGone(1);
  expect(ended).toEqual([]);
  for (const session of [first, second]) book.sessionOver({ ...VIEWER, ...session });
  expect(ended).toEqual(['record of 1.1']);
  expect([...book.takeOver()]).toEqual([[2, [1]]]);
});

test('a thread that has stopped has told all ends itself', () => {
  const { book, bind, ended } = start();
  bind(1, 1);
  const other = bind(2, 1);
  book.threadStopped(1);
  book.threadGone(1);
  book.sessionOver({ ...VIEWER, session: '1.1' });
  expect(book.takeOver().size).toBe(0);
  book.threadGone(2);
  book.close();
  book.close();
  book.sessionOver({ ...VIEWER, ...other });
  expect([ended, book.size]).toEqual([['record of 2.1'], 0]);
});

test('a session that was there before ends with itself, whatever thread ends or stops, and in the end', () => {
  const { book, ended, onOver } = start();
  const closed = [vi.fn(), vi.fn()];
  const later = { ...VIEWER, session: 't' };
  book.enterSession(VIEWER, 'again', () => closed[0]?.());
  book.enterSession(later, 'again', () => closed[1]?.());
  for (const thread of [0, 1]) {
    book.threadStopped(thread);
    book.threadGone(thread);
  }
  expect(book.size).toBe(2);
  expect([book.sessionOver(VIEWER), book.sessionOver(VIEWER)]).toEqual(['again', undefined]);
  expect(closed.map((each) => each.mock.calls.length)).toEqual([1, 0]);
  book.close();
  book.close();
  expect(closed.map((each) => each.mock.calls.length)).toEqual([1, 1]);
  expect([book.size, ended, onOver.mock.calls.length]).toEqual([0, [], 0]);
});
