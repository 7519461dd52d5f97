/** One item of the answer to a batch, as the server sent it. */
export interface ItemAnswer {
  readonly statusCode: number;
  readonly message: string;
  /** The server's object for the item; absent if it failed. */
  readonly response?: unknown;
}

/** The server answered with a failure. */
export class MillraceError extends Error {
  override readonly name = 'MillraceError';
  /** HTTP status; 207: some items of a batch failed. */
  readonly status: number;
  /** Cause from the header `Millrace-Reason`, if the server's message does not state it; null without the header. */
  readonly reason: string | null;
  /** The answer for each item of a batch, in the order of the request; empty if the request failed as a whole. */
  readonly items: readonly ItemAnswer[];
  /** The body: parsed, or as text if it is not JSON. */
  readonly body: unknown;

  /** The message of this error is the server's; for a batch, the message of the first failed item. */
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

/** No answer: nothing listens there, the connection broke, or the time limit expired. `cause` has the details. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
}

/** Whether the status of an answer or of an item is a failure. */
export function isFailure(status: number): boolean {
  return status < 200 || status > 299;
}

function isEnvelope(value: unknown): value is ItemAnswer {
  return typeof value === 'object' && value !== null && 'statusCode' in value && typeof value.statusCode === 'number' && 'message' in value;
}

/** The error code of a connection, which `fetch` hides in the cause of its error. */
export function reasonOf(error: unknown): string {
  const { cause, message } = error as { readonly cause?: { readonly code?: string; readonly message?: string }; readonly message?: string };
  return cause?.code ?? cause?.message ?? message ?? String(error);
}
