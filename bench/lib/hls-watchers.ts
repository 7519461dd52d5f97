/**
 * Child process of `ingest`: one viewer of LL-HLS for each URL behind the first argument. The first is `playlist` for viewers who only reload the
 * video playlist, or `player` for those who follow all renditions and load each part.
 */
import os from 'node:os';
import { fetchText, openSession, readMediaPlaylist } from '../../test/harness/viewer.ts';

/** Elsewhere they would have processors of their own. */
const NICE = 19;

const [kind, ...urls] = process.argv.slice(2);
const isPlayer = kind === 'player';
let watching = 0;
let listed = 0;

/** Loads each part that is listed after the first answer; asks for the next one until the server says no. */
async function watch(playlist: string): Promise<void> {
  let text = await fetchText(playlist);
  let seen = readMediaPlaylist(text, playlist).parts.at(-1);
  watching += 1;
  for (;;) {
    const { lastSequence, lastPart } = readMediaPlaylist(text, playlist);
    const next = new URL(playlist);
    next.searchParams.set('_HLS_msn', `${lastSequence}`);
    next.searchParams.set('_HLS_part', `${lastPart + 1}`);
    text = await fetchText(next.href);
    listed += 1;
    if (!isPlayer) continue;
    const { parts } = readMediaPlaylist(text, playlist);
    for (const part of parts.slice(seen === undefined ? 0 : parts.lastIndexOf(seen) + 1)) {
      const answer = await fetch(part);
      await answer.arrayBuffer();
      if (answer.status !== 200) throw new Error(`GET ${part} answered ${answer.status}`);
    }
    seen = parts.at(-1);
  }
}

os.setPriority(os.getPriority() + NICE);
const playlists = await Promise.all(
  urls.map(async (url) => {
    const { video, audio } = await openSession(url);
    return audio === null || !isPlayer ? [video] : [video, audio];
  }),
);
for (const playlist of playlists.flat()) {
  watch(playlist).catch((error: unknown) => {
    console.error(`viewer of ${playlist}: ${String(error)}`);
    process.exit(1);
  });
}
const told = setInterval(() => {
  if (watching === playlists.flat().length) console.log(`watching ${watching} playlists, ${listed} reloads`);
}, 1000);
process.once('SIGTERM', () => {
  clearInterval(told);
  process.exit(0);
});
