/** The layout of one kind of documents in their files: all of them have `format`, `version` and `kind`. */
import { createHash } from 'node:crypto';

/** File systems take 255 bytes; endings, temporary and set-aside names append up to 35. */
const MAX_ENCODED_LENGTH = 200;

/** The members beside the three that all documents have, and the name of the file. */
export interface DocumentLayout<Document> {
  readonly write: (document: Document) => object;
  /** Throws an `Error` that names missing members. */
  readonly read: (members: Readonly<Record<string, unknown>>) => Document;
  /** The name of the file without its ending. Every key maps to another one. */
  readonly encode: (key: string) => string;
  /** The key of the document in the file `name`, which has no ending here. */
  readonly keyOf: (document: Document, name: string) => string;
}

/** The document is one member, `value`. Keys are chosen by the owner: letters, digits, `-` and `_`, as they are in the names of the files. */
export const KEYED: DocumentLayout<unknown> = {
  write: (value) => ({ value }),
  read: ({ value }) => value,
  encode: (key) => key,
  keyOf: (_value, name) => name,
};

/** The members of the document lie beside the others, and its key is a name of any letters that it tells itself. */
export function named<Document extends object>(
  nameOf: (document: Document) => string,
  read: DocumentLayout<Document>['read'],
): DocumentLayout<Document> {
  return { write: (document) => document, read, encode: encodeName, keyOf: nameOf };
}

/** Stays inside the folder, whatever the name. */
function encodeName(name: string): string {
  const encoded = encodeURIComponent(name).replaceAll('.', '%2E').replaceAll('*', '%2A');
  if (encoded.length <= MAX_ENCODED_LENGTH) return encoded;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 32);
  return `${encoded.slice(0, MAX_ENCODED_LENGTH - digest.length - 1)}~${digest}`;
}
