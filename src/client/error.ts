/** One item of the answer to a batch, as the server sent it. */
export interface ItemAnswer {
  readonly statusCode: number;
  readonly message: string;
  /** The server's object for the item; absent when it failed. */
  readonly response?: unknown;
}

/** The server answered, and not with what was asked for. */
export class MillraceError extends Error {
  override readonly name = 'MillraceError';
  /** HTTP status; 207: some items of a batch failed. */
  readonly status: number;
  /** Why, where the message of the server does not say so (header `Millrace-Reason`); null when it has none. */
  readonly reason: string | null;
  /** The answer to each item of a batch, in the order of the request; empty when the request failed as a whole. */
  readonly items: readonly ItemAnswer[];
  /** The body: parsed, or the text of one that is no JSON. */
  readonly body: unknown;

  /** `message` of this error is the server's; of a batch, that of the first item that failed. */
  constructor(status: number, body: unknown, reason: string | null = null) {
    const items = Array.isArray(body) ? body.filter(isEnvelope) : [];
    const told = items.find(({ statusCode }) => isFailure(statusCode)) ?? (isEnvelope(body) ? body : null);
    super(told?.message ?? `HTTP status ${status}`);
    this.status = status;
    this.reason = reason;
    this.items = items;
    this.body = body;
  }
}

/** No answer came: nobody listens there, the connection broke, or the time was up. `cause` says which. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
}

/** Whether a status of an answer or of an item says that it failed. */
export function isFailure(status: number): boolean {
  return status < 200 || status > 299;
}

function isEnvelope(value: unknown): value is ItemAnswer {
  return typeof value === 'object' && value !== null && 'statusCode' in value && typeof value.statusCode === 'number' && 'message' in value;
}

/** A connection's error code: `fetch` hides it in the cause of its error. */
export function reasonOf(error: unknown): string {
  const { cause, message } = error as { readonly cause?: { readonly code?: string; readonly message?: string }; readonly message?: string };
  return cause?.code ?? cause?.message ?? message ?? String(error);
}
