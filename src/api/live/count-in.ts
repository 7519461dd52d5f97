import { ApiError } from '../errors.ts';

/** The number of a member of a query, `usual` when it is not there. Throws `ApiError` for what is none from 0 to `most`. */
export function countIn(text: string, member: string, { usual, most }: { readonly usual: number; readonly most: number }): number {
  const count = text === '' ? usual : Number(text);
  if (/^\d{0,9}$/.test(text) && count <= most) return count;
  throw new ApiError('MEMBER_INVALID', member, `a whole number from 0 to ${most}`);
}
