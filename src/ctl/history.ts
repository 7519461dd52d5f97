/** `history`: figures of the server, or of a stream, from before the command was called. */

import { viewersOf } from '../client/index.ts';
import { addressed, type Command, optionalArgument } from './command.ts';
import { bitrateText, bytesText } from './text-table.ts';

const BITS = 8;
const PERCENT = 100;
const NONE = 'no samples yet: there is one every ten seconds';

/** The server's last hour, or the last half hour of a stream. */
export const historyCommand: Command = {
  name: 'history',
  usage: '[VHOST/APP/STREAM]',
  summary: 'Throughput and viewers of the last hour, or of a stream in the last half hour',
  details: 'A row for every ten seconds, oldest first. Rates are means since the row before; --json has them in bytes per second.',
  run: async (call) => {
    const { client, out } = call;
    const address = optionalArgument(call, 'VHOST/APP/STREAM');
    if (address === undefined) {
      const { samples } = await client.get('/v2/internals/history');
      return out.list(
        [
          { title: 'TIME', of: ({ time }) => time },
          { title: 'IN', of: ({ throughputIn }) => bitrateText(throughputIn * BITS), right: true },
          { title: 'OUT', of: ({ throughputOut }) => bitrateText(throughputOut * BITS), right: true },
          { title: 'VIEWERS', of: ({ connections }) => viewersOf(connections), right: true },
          { title: 'CPU', of: ({ cpu }) => `${(cpu * PERCENT).toFixed(1)} %`, right: true },
          { title: 'EVENT LOOP', of: ({ eventLoop }) => `${(eventLoop * PERCENT).toFixed(1)} %`, right: true },
          { title: 'MEMORY', of: ({ memory }) => bytesText(memory), right: true },
        ],
        samples,
        NONE,
      );
    }
    const path = addressed(address, ['vhost', 'app', 'stream']) as Record<'vhost' | 'app' | 'stream', string>;
    const { samples } = await client.get('/v2/vhosts/{vhost}/apps/{app}/streams/{stream}/history', { path });
    out.list(
      [
        { title: 'TIME', of: ({ time }) => time },
        { title: 'IN', of: ({ throughputIn }) => bitrateText(throughputIn * BITS), right: true },
        { title: 'OUT', of: ({ throughputOut }) => bitrateText(throughputOut * BITS), right: true },
        { title: 'FPS', of: ({ framerate }) => (framerate === undefined ? '-' : Number(framerate.toFixed(2))), right: true },
        { title: 'GOP', of: ({ keyFrameInterval }) => keyFrameInterval ?? '-', right: true },
        { title: 'VIEWERS', of: ({ viewers }) => viewers, right: true },
      ],
      samples.map((sample) => ({ ...path, ...sample })),
      NONE,
    );
  },
};
