/** `recorded`: recorded files, with URLs to play them. */
import { type Command, NotThere, optionalArgument, UsageProblem } from './command.ts';
import { placeIn } from './lists.ts';
import { bytesText } from './text-table.ts';
import { inApps } from './walk.ts';

const RECORDINGS = '/v2/vhosts/{vhost}/apps/{app}/recordings';
const MS_A_SECOND = 1000;

/** Finished files only; a running recording appears when its file is finished. */
export const recordedCommand: Command = {
  name: 'recorded',
  usage: '[VHOST[/APP[/STREAM]]]',
  summary: 'Recorded files, by time, with URLs that play them',
  options: {
    from: { value: 'TIME', about: 'only recordings after this time, such as 2026-11-23T18:00:00Z' },
    to: { value: 'TIME', about: 'only recordings before this time' },
    lifetime: { value: 'SECONDS', about: 'how long the URLs are valid (default: four hours)' },
    url: { about: 'print only the URL that plays all of them in sequence (HLS)' },
  },
  details: 'Each URL contains a token for its file: anyone with the URL can play it. --url needs a stream.',
  run: async (call) => {
    const { client, out } = call;
    const { stream, ...place } = placeIn(optionalArgument(call, 'whose files'), ['vhost', 'app', 'stream']);
    if (call.flag('url') && stream === undefined) throw new UsageProblem('--url is for the files of one stream: give VHOST/APP/STREAM');
    const query = Object.fromEntries(
      ['from', 'to', 'lifetime'].flatMap((name) => {
        const value = call.option(name);
        return value === undefined ? [] : [[name, value]];
      }),
    );
    const answers = await inApps(client, place, async (at) => {
      const answer = await client.get(RECORDINGS, { path: at, query: { ...query, ...(stream !== undefined && { stream }) } });
      return [{ at, answer }];
    });
    const absolute = (path: string): string => `${client.url}${path}`;
    if (call.flag('url')) {
      const playlist = answers[0]?.answer.playlist;
      if (playlist === undefined) throw new NotThere('no recordings in that time');
      return out.done(absolute(playlist), { url: absolute(playlist) });
    }
    const rows = answers.flatMap(({ at, answer }) =>
      answer.recordings.map((row) => ({ ...at, ...row, file: absolute(row.file), playlist: absolute(row.playlist) })),
    );
    out.list(
      [
        { title: 'STREAM', of: (row) => `${row.vhost}/${row.app}/${row.stream}` },
        { title: 'TASK', of: ({ task }) => task },
        { title: 'FROM', of: ({ startTime }) => startTime },
        { title: 'SECONDS', of: ({ durationMs }) => (durationMs / MS_A_SECOND).toFixed(1), right: true },
        { title: 'SIZE', of: ({ bytes }) => bytesText(bytes), right: true },
        { title: 'FILE', of: ({ file }) => file },
      ],
      rows,
      'nothing was recorded',
    );
    for (const { at, answer } of answers) {
      const last = answer.recordings.at(-1);
      if (answer.more && last !== undefined)
        call.process.err(`millrace ctl: ${at.vhost}/${at.app} has more: continue with --from ${last.endTime}\n`);
    }
  },
};
