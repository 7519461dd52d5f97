import { expect, test } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { hidingAddresses } from './private-logger.ts';

test.each([
  ['the name is already published by TCP://203.0.113.9:50412', 'the name is already published by TCP://xxx.xxx.xxx.xxx:xxx'],
  ['SRT://[2001:db8::7]:9999 left', 'SRT://xxx.xxx.xxx.xxx:xxx left'],
  ['udp 198.51.100.1', 'udp xxx.xxx.xxx.xxx'],
  ['millrace 0.1.0 after 1.5 s at 12:30:00 [1/2]', 'millrace 0.1.0 after 1.5 s at 12:30:00 [1/2]'],
])('%s', (message, hidden) => {
  const inner = new RecordingLogger();
  hidingAddresses(inner).info({ detail: message }, message);
  expect(inner.lines).toMatchObject([{ message: hidden, fields: { detail: hidden } }]);
});

test('the peer is hidden in any form, also in the fields of a child; the address of a listener is shown', () => {
  const inner = new RecordingLogger();
  const logger = hidingAddresses(inner).child({ peer: '2001:db8::7', session: 3 });
  for (const level of ['debug', 'info', 'warn', 'error'] as const) logger[level]({ host: '192.0.2.1', port: 80 }, 'x');
  expect(inner.lines).toHaveLength(4);
  for (const { fields } of inner.lines) expect(fields).toEqual({ peer: 'xxx.xxx.xxx.xxx', session: 3, host: '192.0.2.1', port: 80 });
});
