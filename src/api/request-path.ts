/** The path of a request in the form for matching: as received, with ASCII escapes untouched; and the parameters of its query. */
import { ApiError } from './errors.ts';

const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*/i;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the range of ASCII is meant
const ASCII = /^[\u0000-\u007f]*$/;
const NON_ASCII_ESCAPES = /(?:%[89a-f][0-9a-f])+/gi;

/**
 * The path of a request target (origin or absolute form), without the query; null without one.
 * Only escapes of characters beyond ASCII are decoded: names with such characters have no other spelling in a URL.
 */
export function rawPath(target: string): string | null {
  const relative = target.startsWith('/') ? target : target.replace(ABSOLUTE_FORM, '');
  if (relative === '' && target !== '') return '/';
  if (!relative.startsWith('/') || !ASCII.test(relative)) return null;
  const query = relative.indexOf('?');
  const path = query < 0 ? relative : relative.slice(0, query);
  return path.includes('%') ? path.replace(NON_ASCII_ESCAPES, decodeEscapes) : path;
}

/** The first value of `name` in the query string of a request target or URL, decoded; undefined if absent. */
export function queryParameterOf(target: string, name: string): string | undefined {
  const start = target.indexOf('?');
  return start < 0 ? undefined : (new URLSearchParams(target.slice(start)).get(name) ?? undefined);
}

/** Escapes that are not UTF-8 remain as they are. */
function decodeEscapes(escapes: string): string {
  try {
    return decodeURIComponent(escapes);
  } catch (error) {
    if (error instanceof URIError) return escapes;
    throw error;
  }
}

/** A number in a query; `usual` if it is absent. Throws `ApiError` unless it is a number from 0 to `most`. */
export function countIn(text: string, member: string, { usual, most }: { readonly usual: number; readonly most: number }): number {
  const count = text === '' ? usual : Number(text);
  if (/^\d{0,9}$/.test(text) && count <= most) return count;
  throw new ApiError('MEMBER_INVALID', member, `a whole number from 0 to ${most}`);
}
