/** The text of a thrown value, which may be anything. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
