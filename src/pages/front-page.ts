/** The page for a person who opens a port of this server in a browser: plain HTML, without scripts. */

const STYLE_HOLDER = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="dark light">
<meta name="robots" content="noindex">
<link rel="icon" href="data:,">
`;

/** A page with a heading, sentences and links; all of them are text of ours or are escaped here. */
export function frontPage(title: string, sentences: readonly string[], links: readonly (readonly [href: string, text: string])[]): string {
  const paragraphs = sentences.map((sentence) => `<p>${escaped(sentence)}</p>`);
  const items = links.map(([href, text]) => `<li><a href="${escaped(href)}">${escaped(text)}</a></li>`);
  const list = items.length === 0 ? '' : `<ul>\n${items.join('\n')}\n</ul>\n`;
  return `${STYLE_HOLDER}<title>${escaped(title)}</title>\n</head>\n<body>\n<main>\n<h1>${escaped(title)}</h1>\n${paragraphs.join('\n')}\n${list}</main>\n</body>\n</html>\n`;
}

/** Text that stands for itself in HTML, in attributes too. */
export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** The host of a `Host` header, without port: a name, an IPv4 address, or an IPv6 address in brackets. Empty for anything else. */
export function hostOnly(header: string): string {
  return /^(\[[\da-f:.]+\]|[\w.-]+)(?::\d+)?$/i.exec(header)?.[1] ?? '';
}

/** Whether the client can show a page: browsers accept HTML when a person opens an address; players and programs do not. */
export function wantsPage(accept: string | undefined): boolean {
  return accept !== undefined && /(?:^|,)\s*text\/html\s*(?:[;,]|$)/i.test(accept);
}
