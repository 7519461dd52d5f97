import { expect, test, vi } from 'vitest';
import type { Denied } from '../../access/access-check.ts';
import { AdmissionBook } from './admission-book.ts';

const DENIED: Denied = { admitted: false, code: 'no', reason: 'no' };
const VIEWER = { outlet: 1, session: 's', remoteAddress: '192.0.2.1' };

function enter(book: AdmissionBook<string>, thread = 1): { readonly ticket: number; readonly closed: ReturnType<typeof vi.fn> } {
  const closed = vi.fn();
  const verdict = book.enter(thread, { admitted: true, expiresAt: 5, newUrl: 'http://a/b/c', closed }, 'q');
  if (!verdict.admitted || verdict.ticket === undefined) throw new Error('there is no ticket');
  expect(verdict).toEqual({ admitted: true, expiresAt: 5, expiry: undefined, newUrl: 'http://a/b/c', ticket: verdict.ticket });
  return { ticket: verdict.ticket, closed };
}

test('who is refused, or has no end to tell, gets no ticket', () => {
  const book = new AdmissionBook<string>();
  expect(book.enter(1, DENIED, 'q')).toBe(DENIED);
  expect(book.enter(1, { admitted: true, expiresAt: 5 }, 'q')).not.toHaveProperty('ticket');
  expect(book.size).toBe(0);
});

test('an admission ends once: given back, or with its session', () => {
  const book = new AdmissionBook<string>();
  const [returned, watched, late] = [enter(book), enter(book), enter(book)];
  book.over(returned.ticket);
  book.over(returned.ticket);
  book.bind(watched.ticket, VIEWER, true);
  expect(book.sessionOver({ ...VIEWER, outlet: 2 })).toBeUndefined();
  expect(watched.closed).not.toHaveBeenCalled();
  expect([book.sessionOver(VIEWER), book.sessionOver(VIEWER)]).toEqual(['q', undefined]);
  // Its outlet was gone when the thread told of it.
  book.bind(late.ticket, { ...VIEWER, session: 't' }, false);
  expect([returned, watched, late].map(({ closed }) => closed.mock.calls.length)).toEqual([1, 1, 1]);
  expect(book.size).toBe(0);
});

test('a thread that ends takes those along that are no session yet', () => {
  const book = new AdmissionBook<string>();
  const [asking, watching, elsewhere] = [enter(book), enter(book), enter(book, 2)];
  book.bind(watching.ticket, VIEWER, true);
  book.threadGone(1);
  expect([asking, watching, elsewhere].map(({ closed }) => closed.mock.calls.length)).toEqual([1, 0, 0]);
});

test('a session that was there before ends with itself, whatever thread ends', () => {
  const book = new AdmissionBook<string>();
  const closed = vi.fn();
  book.enterSession(VIEWER, closed, 'again');
  book.threadGone(0);
  expect(closed).not.toHaveBeenCalled();
  expect(book.sessionOver(VIEWER)).toBe('again');
  expect(closed).toHaveBeenCalledTimes(1);
});

test('in the end all are over, and so is whoever comes after it', () => {
  const book = new AdmissionBook<string>();
  const [first, second] = [enter(book), enter(book)];
  book.bind(second.ticket, VIEWER, true);
  book.close();
  book.close();
  const after = enter(book);
  expect([first, second, after].map(({ closed }) => closed.mock.calls.length)).toEqual([1, 1, 1]);
});
