/** Links of Markdown pages, and anchors as code hosts make them. */

/** A link with its location. */
export interface PageLink {
  readonly target: string;
  readonly line: number;
}

const FENCE = /^\s*(?:```|~~~)/;
const LINK = /\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g;
const TAG = /<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)="([^"]+)"/g;

/** The lines of a page; lines in code blocks are empty. */
function proseOf(text: string): string[] {
  let isCode = false;
  return text.split('\n').map((line) => {
    const isEdge = FENCE.test(line);
    if (isEdge) isCode = !isCode;
    return isEdge || isCode ? '' : line;
  });
}

/** Links and images outside code. */
export function linksOf(text: string): PageLink[] {
  return proseOf(text).flatMap((line, at) => {
    const shown = line.replace(/`[^`]*`/g, '``');
    return [LINK, TAG].flatMap((pattern) => [...shown.matchAll(pattern)].map(([, target = '']) => ({ target, line: at + 1 })));
  });
}

/** Anchors of the headings; a repeated heading gets a number. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const line of proseOf(text)) {
    const heading = /^#{1,6}\s+(.*?)\s*#*$/.exec(line)?.[1];
    if (heading === undefined) continue;
    const shown = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = shown.replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '').replaceAll(' ', '-');
    let unique = anchor;
    for (let n = 1; anchors.has(unique); n += 1) unique = `${anchor}-${n}`;
    anchors.add(unique);
  }
  return anchors;
}

/** Faults of the links of a page; `read` returns the text of a file by its path, null if it does not exist. */
export function brokenLinks(page: string, text: string, read: (path: string) => string | null): string[] {
  return linksOf(text).flatMap(({ target, line }) => {
    if (/^[a-z][a-z0-9+.-]*:/i.test(target)) return [];
    const { pathname, hash } = new URL(target, `file:///${page}`);
    const path = decodeURIComponent(pathname.slice(1));
    const found = read(path);
    if (found === null) return [`${page}:${line}: there is no ${path}`];
    const anchor = decodeURIComponent(hash.slice(1));
    return anchor === '' || anchorsOf(found).has(anchor) ? [] : [`${page}:${line}: ${path} has no heading for #${anchor}`];
  });
}
