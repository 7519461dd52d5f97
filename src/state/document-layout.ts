/** The layout of one kind of documents in their files: all of them have `format`, `version` and `kind`. */
import { createHash } from 'node:crypto';

/** File systems allow 255 bytes; endings, temporary and set-aside names append up to 35. */
const MAX_ENCODED_LENGTH = 200;

/** The members besides the three of all documents, and the name of the file. */
export interface DocumentLayout<Document> {
  readonly write: (document: Document) => object;
  /** Throws an `Error` that names missing members. */
  readonly read: (members: Readonly<Record<string, unknown>>) => Document;
  /** The name of the file without its ending; different for every key. */
  readonly encode: (key: string) => string;
  /** The key of the document in the file `name`, which is without its ending here. */
  readonly keyOf: (document: Document, name: string) => string;
}

/** The document is one member, `value`. Keys are chosen by the owner: letters, digits, `-` and `_`, as in file names. */
export const KEYED: DocumentLayout<unknown> = {
  write: (value) => ({ value }),
  read: ({ value }) => value,
  encode: (key) => key,
  keyOf: (_value, name) => name,
};

/** The members of the document are beside the common ones; its key is its name, which may have any characters. */
export function named<Document extends object>(
  nameOf: (document: Document) => string,
  read: DocumentLayout<Document>['read'],
): DocumentLayout<Document> {
  return { write: (document) => document, read, encode: encodeName, keyOf: nameOf };
}

/** The result stays inside the folder for every name. */
function encodeName(name: string): string {
  const encoded = encodeURIComponent(name).replaceAll('.', '%2E').replaceAll('*', '%2A');
  if (encoded.length <= MAX_ENCODED_LENGTH) return encoded;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 32);
  return `${encoded.slice(0, MAX_ENCODED_LENGTH - digest.length - 1)}~${digest}`;
}
