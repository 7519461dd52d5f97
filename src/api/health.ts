/** Whether the server can be used, for load balancers and containers. */
import { Drain } from '../core/drain.ts';
import type { Conditions } from '../util/conditions.ts';
import type { Answer } from './envelope.ts';
import { writeJson } from './json/json-writer.ts';

/** Limit of reasons in an answer. */
const MAX_REASONS = 20;

/** The phase of the server. */
export type Phase = 'starting' | 'running' | 'stopping';

/** Reason why a draining server must not get new clients. */
const DRAINED = 'the server is draining: it refuses new viewers and publishers';

/** The state behind `/health`. Each server has one; its owner changes the phase. */
export class Health {
  readonly conditions: Conditions;
  phase: Phase = 'starting';
  readonly #drain: Pick<Drain, 'active'>;

  /** `drain`: default: never active. */
  constructor(conditions: Conditions, drain: Pick<Drain, 'active'> = new Drain()) {
    this.conditions = conditions;
    this.#drain = drain;
  }

  /** 503 while the server starts, stops or is drained; otherwise 200, even if there are problems: it serves what it can. */
  answer(): Answer {
    if (this.phase !== 'running') return { status: 503, body: writeJson({ status: this.phase }) };
    const { reasons } = this.conditions;
    if (this.#drain.active) {
      return { status: 503, body: writeJson({ status: 'draining', reasons: [DRAINED, ...reasons].slice(0, MAX_REASONS) }) };
    }
    if (reasons.length === 0) return { status: 200, body: '{"status":"ok"}' };
    return { status: 200, body: writeJson({ status: 'degraded', reasons: reasons.slice(0, MAX_REASONS) }) };
  }
}
