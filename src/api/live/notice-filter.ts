/** The notices that a follower requests, by the query of its request. */
import { NOTICE_TYPES, type Notice, type NoticeGroup, type NoticeType } from '../../core/notices/notice.ts';
import { ApiError } from '../errors.ts';

const GROUPS: ReadonlySet<string> = new Set(Object.values(NOTICE_TYPES));
const PLACES = ['vhost', 'app', 'stream'] as const;

/** True for notices to send. */
export type NoticeFilter = (notice: Notice) => boolean;

/** Throws `ApiError` for an unknown type. `query`: a value of the query string, undefined if absent. */
export function noticeFilter(query: (name: string) => string | undefined): NoticeFilter {
  const types = typesOf(query('types'));
  const places = PLACES.map((name) => [name, query(name)] as const).filter(([, wanted]) => wanted !== undefined && wanted !== '');
  return (notice) => {
    if (types !== null && !types.has(notice.type)) return false;
    // Sums over many places concern each of them.
    if ((notice.type === 'session.summary' || notice.type === 'refusal.counted') && notice.vhost === undefined) return true;
    const members: Readonly<Record<string, unknown>> = { ...notice };
    return places.every(([name, wanted]) => members[name] === wanted);
  };
}

/** Null: all types. */
function typesOf(text: string | undefined): ReadonlySet<string> | null {
  if (text === undefined || text === '') return null;
  const types = new Set<string>();
  for (const word of text.split(',').map((each) => each.trim())) {
    if (word in NOTICE_TYPES) types.add(word);
    else if (GROUPS.has(word)) for (const type of typesIn(word)) types.add(type);
    else throw new ApiError('MEMBER_INVALID', 'types', `one or more of ${[...GROUPS, ...Object.keys(NOTICE_TYPES)].join(', ')}`);
  }
  return types;
}

function typesIn(group: string): NoticeType[] {
  return (Object.entries(NOTICE_TYPES) as [NoticeType, NoticeGroup][]).filter(([, own]) => own === group).map(([type]) => type);
}
