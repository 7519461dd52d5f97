/** A running server's reports: the lines of its log, and its notices. */
import { type ServerConfig, secretsOf } from '../config/index.ts';
import { NoticeBoard } from '../core/notices/notice-board.ts';
import { BudgetedLogger, limitedLines } from '../util/budgeted-logger.ts';
import type { Clock } from '../util/clock.ts';
import { GatedLines, type LeveledLines } from '../util/gated-lines.ts';
import { KnownSecrets } from '../util/known-secrets.ts';
import type { LineBudget } from '../util/line-budget.ts';
import { LogTail, TailedLines } from '../util/log-tail.ts';
import type { Logger, LogLines } from '../util/logger.ts';
import { hidingAddresses, textWithout } from '../util/private-logger.ts';

/** Its owner closes `budget` and `notices`. */
export interface ServerLog {
  /** Receives the lines, from its level on. */
  readonly lines: LeveledLines;
  /** Counts lines, and reports how many were left out. */
  readonly budget: LineBudget;
  /** Writes to `lines`, within the budget, and without the addresses of clients if the configuration hides them. */
  readonly logger: Logger;
  /** The newest lines, for clients that follow the log. */
  readonly tail: LogTail;
  /** The events of the server. */
  readonly notices: NoticeBoard;
  /** The secrets of the configuration, which neither the tail of the log nor the events show. */
  readonly secrets: KnownSecrets;
}

/** Options of a log. */
export interface ServerLogOptions {
  readonly written: LogLines | LeveledLines;
  /** The level does not follow the configuration. */
  readonly keepLevel: boolean;
  readonly clock: Clock;
}

/** The log of a server with this configuration. */
export function serverLog(config: ServerConfig, { written, keepLevel, clock }: ServerLogOptions): ServerLog {
  const lines = 'level' in written ? written : new GatedLines(written, 'debug');
  if (!keepLevel && 'level' in written) lines.level = config.log.level;
  const secrets = new KnownSecrets();
  secrets.configure(secretsOf(config));
  const tail = new LogTail({ clock, secrets });
  const tailed = new TailedLines(lines, tail);
  const budget = limitedLines(clock, tailed);
  const whole = new BudgetedLogger(() => tailed, budget);
  const notices = new NoticeBoard({ clock, secrets, ...(config.privacyProtection && { hide: textWithout }) });
  return { lines, budget, logger: config.privacyProtection ? hidingAddresses(whole) : whole, tail, notices, secrets };
}
