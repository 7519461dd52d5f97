/** `watch`: prints events as they happen. */
import type { LiveEvent } from '../client/index.ts';
import { plainText } from '../util/plain-text.ts';
import { type Command, optionalArgument } from './command.ts';
import { placeIn } from './lists.ts';

/** Members with a fixed place in a line. */
const PLACED: ReadonlySet<string> = new Set(['id', 'time', 'type', 'vhost', 'app', 'stream']);

/** Ends when the user interrupts it, or when the server refuses. */
export const watchCommand: Command = {
  name: 'watch',
  usage: '[VHOST[/APP[/STREAM]]]',
  summary: 'Follow events as they happen: streams, viewers, tasks, refusals, changes',
  options: { types: { value: 'WORDS', about: 'only these groups or types, such as streams,session.ended' } },
  details: 'Prints a line for each event, with --json a line of JSON, until interrupted. Reconnects when the connection breaks.',
  run: async (call) => {
    const place = placeIn(optionalArgument(call, 'what to watch'), ['vhost', 'app', 'stream']);
    const types = call.option('types');
    const onLost = ({ message }: Error): void => call.process.err(plainText(`millrace ctl: ${message}; trying again\n`));
    for await (const event of call.client.events({ ...place, ...(types !== undefined && { types }), onLost })) {
      call.out.line(lineOf(event), event);
    }
  },
};

/** `12:16:03.377 stream.ended default/app/live reason=… detail=…`. */
function lineOf(event: LiveEvent): string {
  const { time = new Date().toISOString(), type, vhost, app, stream } = event;
  const names = [vhost, app, stream].filter((name) => name !== undefined).join('/');
  const members = Object.entries(event).flatMap(([key, value]) =>
    PLACED.has(key) && !(key === 'id' && type === 'task.changed') ? [] : [memberText(key, value)],
  );
  return [time, type, names, ...members].filter((part) => part !== '').join(' ');
}

/** `key=value`, the value in quotation marks where a blank would end it. */
export function memberText(key: string, value: unknown): string {
  return `${key}=${typeof value === 'string' && /^[^\s"]+$/.test(value) ? value : JSON.stringify(value)}`;
}
