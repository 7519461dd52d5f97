/** The `#!::` syntax of stream ids (SRT access-control guidelines): `#!::key=value,key=value`. */

const PREFIX = '#!::';

/** The request of a stream id. */
export interface AccessControl {
  /** `u`: user name; OvenMediaEngine and the encoders it knows put the whole address here. */
  readonly user: string | null;
  /** `r`: name of the resource, `app/stream[/playlist][?query]` on the host `h`. */
  readonly resource: string | null;
  /** `h`: host name. */
  readonly host: string | null;
  /** `s`: id of a session, agreed on before. */
  readonly session?: string;
  /** `m`: `request`, `publish` or `bidirectional`. */
  readonly mode: string | null;
}

/** Null if the text lacks the syntax: then it is an address. Values may contain `=`. */
export function parseAccessControl(streamId: string): AccessControl | null {
  if (!streamId.startsWith(PREFIX)) return null;
  const values = new Map<string, string>();
  for (const pair of streamId.slice(PREFIX.length).split(',')) {
    const equals = pair.indexOf('=');
    if (equals > 0) values.set(pair.slice(0, equals), pair.slice(equals + 1));
  }
  const value = (key: string): string | null => values.get(key) ?? null;
  const session = value('s');
  return { user: value('u'), resource: value('r'), host: value('h'), mode: value('m'), ...(session !== null && { session }) };
}
