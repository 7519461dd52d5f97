import { expect, test } from 'vitest';
import { MillraceError, UnreachableError } from '../client/index.ts';
import { NotThere, UsageProblem } from './command.ts';
import { failureOf } from './failure.ts';

const refusal = (status: number, message: string): MillraceError => new MillraceError(status, { message, statusCode: status });
const unreachable = (code: string): UnreachableError =>
  new UnreachableError(`no answer from http://h (${code})`, { cause: Object.assign(new Error('fetch failed'), { cause: { code } }) });

test.each([
  ['a name without another word', refusal(404, 'Not Found'), 1, 'millrace ctl: Not Found: default/app/live/nobody\n'],
  ['a name that is taken', refusal(409, 'Conflict'), 1, 'millrace ctl: Conflict: the name is taken\n'],
  ['words of the server', refusal(404, 'no such thing'), 1, 'millrace ctl: no such thing\n'],
  ['another server', new MillraceError(502, '<html>'), 1, /^millrace ctl: HTTP status 502, and no answer of the API: .*\n$/],
  ['a wrong token', refusal(401, 'Invalid'), 1, 'millrace ctl: Invalid: the token is from MILLRACE_TOKEN\n'],
  ['nobody', unreachable('ECONNREFUSED'), 3, /^millrace ctl: no answer from http:\/\/h \(ECONNREFUSED\)\nNothing listens there: .*\n$/],
  ['a host of another name', unreachable('ERR_TLS_CERT_ALTNAME_INVALID'), 3, /\nIts certificate is for another host name: .*--api\.\n$/],
  ['a firewall', unreachable('UND_ERR_CONNECT_TIMEOUT'), 3, /\nThe host does not answer: .*\n$/],
  ['an unknown object', unreachable('EODD'), 3, 'millrace ctl: no answer from http://h (EODD)\n'],
  ['arguments', new UsageProblem('give a name'), 2, "millrace ctl: give a name\nTry 'millrace ctl kick --help'.\n"],
  ['nothing there', new NotThere('no task'), 1, 'millrace ctl: no task\n'],
  ['a fault', new TypeError('x is not a function'), 1, /^millrace ctl: unexpected error: x is not a function\nIs that address .*\n$/],
  ['commands of a terminal', refusal(400, 'a\u001b[2Jb'), 1, 'millrace ctl: a\\u001b[2Jb\n'],
])('%s', (_what, error, code, text) => {
  const attempt = { command: 'kick', args: ['default/app/live/nobody'], tokenFrom: 'MILLRACE_TOKEN' };
  expect(failureOf(error, attempt)).toEqual({ code, text: typeof text === 'string' ? text : expect.stringMatching(text) });
});

test('without a command the help is that of all', () => {
  expect(failureOf(new UsageProblem('give a command'), {}).text).toBe("millrace ctl: give a command\nTry 'millrace ctl --help'.\n");
});
