/**
 * Files of this server's web pages: a fixed list of names with a file each. Requested names are only looked up in the list and never become
 * a path.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

/** Something that a browser can be sent. */
export interface PageFile {
  readonly type: string;
  readonly body: Buffer;
  /** The same, compressed; null where that saves nothing. */
  readonly gzip: Buffer | null;
  /** Quoted, as headers have it. */
  readonly etag: string;
}

/** Where the text of a file is: on disk, or made when it is asked for. */
export type PageSource = { readonly file: string | URL } | { readonly text: string };

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  mjs: 'text/javascript; charset=utf-8',
  ts: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};
const ETAG_DIGITS = 27;
const compress = promisify(gzip);

/** Reads each file once, when it is first asked for. */
export class PageFiles {
  readonly #sources: ReadonlyMap<string, PageSource>;
  readonly #read = new Map<string, Promise<PageFile>>();

  constructor(sources: Iterable<readonly [string, PageSource]>) {
    this.#sources = new Map(sources);
  }

  /** Null for a name that is not on the list; rejects when the file cannot be read, and tries again next time. */
  take(name: string): Promise<PageFile> | null {
    const source = this.#sources.get(name);
    if (source === undefined) return null;
    const before = this.#read.get(name);
    if (before !== undefined) return before;
    const reading = readPage(name, source);
    this.#read.set(name, reading);
    reading.catch(() => this.#read.delete(name));
    return reading;
  }
}

async function readPage(name: string, source: PageSource): Promise<PageFile> {
  const ending = name.slice(name.lastIndexOf('.') + 1);
  const text = 'text' in source ? source.text : await readFile(source.file, 'utf8');
  const body = Buffer.from(ending === 'ts' ? withoutTypes(text) : text);
  const small = await compress(body);
  return {
    type: TYPES[ending] ?? 'application/octet-stream',
    body,
    gzip: small.length < body.length ? small : null,
    etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, ETAG_DIGITS)}"`,
  };
}

/** Strips types with Node.js. Its warning about an experimental feature is suppressed, because it means nothing to an operator. */
function withoutTypes(text: string): string {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return stripTypeScriptTypes(text);
  } finally {
    process.emitWarning = emitWarning;
  }
}
