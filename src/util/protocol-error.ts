/**
 * A peer sent bytes that break its protocol. Parsers throw it where they see it;
 * the owner of the connection decides what to do (usually: close it with this reason).
 */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
  /** Stable code, e.g. `RTMP_CHUNK_SIZE`. Callers branch on this, never on the text. */
  readonly code: string;
  /** Byte offset inside the parsed unit where the fault was seen, or -1 when unknown. */
  readonly offset: number;

  constructor(code: string, detail: string, offset = -1) {
    super(offset >= 0 ? `${detail} (at byte ${offset})` : detail);
    this.code = code;
    this.offset = offset;
  }
}
