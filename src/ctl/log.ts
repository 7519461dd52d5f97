/** `log`: lines of the server's log, as they are written. */
import type { LogEvent } from '../client/index.ts';
import { plainText } from '../util/plain-text.ts';
import { type Command, UsageProblem } from './command.ts';
import { memberText } from './watch.ts';

/** Ends when the user interrupts it, or when the server refuses. */
export const logCommand: Command = {
  name: 'log',
  usage: '',
  summary: 'Lines of the log: the latest, then each as it is written',
  options: {
    level: { value: 'LEVEL', about: 'from this level on: debug, info (default), warn or error' },
    lines: { value: 'COUNT', about: 'how many of those written before, from 0 to 1000 (default: 100)' },
  },
  details:
    'With --json a line of JSON for each. It goes on until it is ended, and comes back when the connection breaks. Needs a token that may write.',
  run: async (call) => {
    if (call.args[0] !== undefined) throw new UsageProblem(`unexpected argument '${call.args[0]}'`);
    const [level, lines] = [call.option('level'), call.option('lines')];
    if (lines !== undefined && !/^\d+$/.test(lines)) throw new UsageProblem(`--lines is a number of lines, not '${lines}'`);
    const onLost = ({ message }: Error): void => call.process.err(plainText(`millrace ctl: ${message}; trying again\n`));
    const wanted = { ...(level !== undefined && { level }), ...(lines !== undefined && { lines: Number(lines) }) };
    for await (const event of call.client.logs({ ...wanted, onLost })) {
      if (event.type !== 'hello') call.out.line(lineOf(event), event);
    }
  },
};

/** `2026-11-28T12:16:03.377+00:00 warn rtmp stream refused app=app peer=…`; for a gap, the number of missing lines. */
function lineOf({ type, time, level, message, fields = {}, missed }: LogEvent): string {
  if (type !== 'log') return type === 'gap' ? `gap ${memberText('missed', missed ?? null)}` : type;
  const { part, ...more } = fields;
  const members = Object.entries(more).map(([name, value]) => memberText(name, value));
  return [time, level, part, message, ...members].filter((piece) => piece !== undefined && piece !== '').join(' ');
}
