/** Negotiation of gzip, our only content coding: RFC 9110 section 12.5.3. */

/** Whether a client with this `Accept-Encoding` accepts gzip: named, or covered by `*`, and not with weight 0. */
export function acceptsGzip(header: string | undefined): boolean {
  if (header === undefined) return false;
  // Browsers send this; it needs no parsing.
  if (header.startsWith('gzip,')) return true;
  let star = false;
  for (const item of header.split(',')) {
    const [coding = '', ...parameters] = item.split(';');
    const name = coding.trim().toLowerCase();
    if (name !== 'gzip' && name !== 'x-gzip' && name !== '*') continue;
    const accepted = !parameters.some((parameter) => /^\s*q\s*=\s*0(\.0{0,3})?\s*$/i.test(parameter));
    if (name !== '*') return accepted;
    star = accepted;
  }
  return star;
}
