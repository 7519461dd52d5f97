/** The two feeds of a server. */
import type { Notice } from '../../core/notices/notice.ts';
import type { NoticeBoard } from '../../core/notices/notice-board.ts';
import type { LogLine, LogTail } from '../../util/log-tail.ts';
import type { LiveFeed } from './live-feed.ts';

/** Tells what happens (`GET /v1/events`). */
export type EventFeed = LiveFeed<Notice, NoticeBoard>;
/** Tells what the log does (`GET /v2/logs`). */
export type LogFeed = LiveFeed<LogLine, LogTail>;
