/** The web console as a browser gets it: one page, its modules and the packages they import. */
import { PageFiles } from './page-files.ts';
import { clientSources, consoleImports, consoleSources, moduleName, vendorSources } from './page-sources.ts';

/** The import map that stands in the page. */
export const CONSOLE_IMPORTS = consoleImports();

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="dark light">
<meta name="robots" content="noindex">
<title>Millrace</title>
<link rel="icon" href="./icon.svg">
<link rel="stylesheet" href="./uplot.css">
<link rel="stylesheet" href="./console.css">
<script type="importmap">${CONSOLE_IMPORTS}</script>
<script type="module" src="./${moduleName('main')}"></script>
</head>
<body>
<div id="console"><noscript>The console needs JavaScript.</noscript></div>
</body>
</html>
`;

const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#0b6bcb"/><path d="M6 22c4 0 4-6 8-6s4 6 8 6 4-6 4-6M6 14c4 0 4-5 8-5s4 5 8 5 4-5 4-5" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round"/></svg>';

/** Everything below `/console/`, by its name there; the page itself is `index.html`. Throws when a package is not installed. */
export function consoleFiles(): PageFiles {
  return new PageFiles([
    ['index.html', { text: PAGE }],
    ['icon.svg', { text: ICON }],
    ...consoleSources(),
    ...clientSources(),
    ...vendorSources(),
  ]);
}
