/** The pages of a media port: the root page, and a simple player at the address of a stream. */
import { escaped, frontPage } from './front-page.ts';
import { PageFiles } from './page-files.ts';
import { consoleSources, importMap, moduleName, vendorSources } from './page-sources.ts';

/** Ports of something that can be had with and without TLS. */
export interface PagePorts {
  readonly port?: number;
  readonly tlsPort?: number;
}

/** Contents of the pages of media ports; plain data. */
export interface PageSettings {
  /** Addresses of streams are player pages (`Modules/PlayerPage`). */
  readonly player: boolean;
  /** Absent: nobody listens. */
  readonly webrtc?: PagePorts;
  readonly llhls?: PagePorts;
  /** Where the console is. */
  readonly console?: PagePorts;
}

/** The import map that stands in the page. */
export const PLAYER_IMPORTS = importMap('../', ['hls.js', 'ovenplayer']);

/** The name of the page itself among the files, which no request can have. */
export const PLAYER_PAGE = '/player.html';

const MODULES: readonly string[] = ['player', 'playing', 'play-hls', 'play-webrtc', 'server-facts'].map(moduleName);
const FILES: ReadonlySet<string> = new Set([...MODULES, 'player.css']);

/** The player page and everything it loads, which lies at the root of the port. Throws when a package is not installed. */
export function playerFiles(settings: PageSettings): PageFiles {
  const page = playerPage(settings);
  return new PageFiles([
    [PLAYER_PAGE, { text: page }],
    ...consoleSources().filter(([name]) => FILES.has(name)),
    ...vendorSources(['hls.mjs', 'ovenplayer.js']),
  ]);
}

/** Names nothing that runs here. `host` is the one that the client used, without port; `isSecure`: it came over TLS. */
export function mediaFrontPage({ console: place, player }: PageSettings, host: string, isSecure: boolean): string {
  const port = isSecure ? place?.tlsPort : place?.port;
  const links: [string, string][] =
    port === undefined || host === '' ? [] : [[`${isSecure ? 'https' : 'http'}://${host}:${port}/console/`, 'Console']];
  const how = player ? 'A stream is watched at /APP/STREAM.' : 'Players find streams at /APP/STREAM/FILE.';
  return frontPage('Millrace', ['This is the media port of a Millrace server.', how], links);
}

function playerPage({ webrtc, llhls }: PageSettings): string {
  const ports = escaped(JSON.stringify({ webrtc, llhls }));
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="dark">
<meta name="robots" content="noindex">
<title>Player</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="../player.css">
<script type="importmap">${PLAYER_IMPORTS}</script>
<script type="module" src="../${moduleName('player')}"></script>
</head>
<body>
<main data-ports="${ports}"><h1>Player</h1><div id="screen"></div><div id="bar"></div><p id="words" role="status"><noscript>The player needs JavaScript.</noscript></p></main>
</body>
</html>
`;
}
