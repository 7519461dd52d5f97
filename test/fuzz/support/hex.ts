/** Bytes in readable form. */

/** The bytes of hex in words. */
export function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(' ', ''), 'hex');
}
