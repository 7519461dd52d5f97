/** Turns what the control plane refused, or a handler must refuse, into errors of the catalogue. */
import { ChangeRefused, type VirtualHostView } from './control.ts';
import { ApiError, type ErrorCode } from './errors.ts';
import { isJsonObject, type JsonObject, type JsonValue } from './json/json-value.ts';

/** What the codes of `ChangeRefused` mean for one kind of request. */
export type Refusals = Readonly<Record<ChangeRefused['code'], (detail: string) => ApiError>>;

/** The API error behind a rejection of the control plane; anything unknown is thrown on. */
export function refusal(error: unknown, meanings: Partial<Refusals>): ApiError {
  if (error instanceof ApiError) return error;
  if (!(error instanceof ChangeRefused)) throw error;
  const meaning = meanings[error.code];
  if (meaning !== undefined) return meaning(error.message);
  return error.code === 'config' ? new ApiError('CONFIG_INVALID', error.message) : new ApiError('INTERNAL');
}

/** Awaits `change` and throws the API error for what the control plane refused. */
export async function changed<T>(change: Promise<T>, meanings: Partial<Refusals>): Promise<T> {
  try {
    return await change;
  } catch (error) {
    throw refusal(error, meanings);
  }
}

/** What a file declares cannot be changed from here. */
export function requireWritable(vhost: VirtualHostView): void {
  if (vhost.readOnly) throw new ApiError('VHOST_READ_ONLY', vhost.name);
}

export function requireArray(body: JsonValue): JsonValue[] {
  if (!Array.isArray(body)) throw new ApiError('BODY_NOT_ARRAY');
  return body;
}

export function requireObject(body: JsonValue, code: ErrorCode = 'BODY_NOT_OBJECT'): JsonObject {
  if (!isJsonObject(body)) throw new ApiError(code);
  return body;
}
