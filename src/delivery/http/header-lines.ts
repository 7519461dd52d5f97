/** Takes complete header lines apart: `A: b\r\nC: d\r\n` → pairs. */
export function splitHeaderLines(block: string): [name: string, value: string][] {
  const pairs: [string, string][] = [];
  for (const line of block.split('\r\n')) {
    const colon = line.indexOf(': ');
    if (colon > 0) pairs.push([line.slice(0, colon), line.slice(colon + 2)]);
  }
  return pairs;
}
