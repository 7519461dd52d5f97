/** Turns refusals of the core and the configuration into errors of the catalogue. */
import { ConfigError } from '../config/index.ts';
import { ControlError, type JsonObject } from '../core/definition.ts';
import type { VirtualHost } from '../core/virtual-host.ts';
import { ApiError, type ErrorCode, notSaved } from './errors.ts';
import { isJsonObject } from './json/json-value.ts';

/** The object of a change. */
export interface Subject {
  readonly vhost: string;
  /** Empty if the change concerns the virtual host. */
  readonly app: string;
  /** Error for a change that could not be carried out or made durable. */
  readonly failed: ErrorCode;
  /** Error for a definition that cannot be used; default `CONFIG_INVALID`. */
  readonly invalid?: ErrorCode;
}

/** The API error for a refusal; other errors are rethrown. */
export function refusal(error: unknown, { vhost, app, failed, invalid = 'CONFIG_INVALID' }: Subject): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof ConfigError) return new ApiError(invalid, error.message);
  if (!(error instanceof ControlError)) throw error;
  switch (error.code) {
    case 'vhost-exists':
      return new ApiError('VHOST_EXISTS', vhost);
    case 'vhost-missing':
      return new ApiError('VHOST_NOT_FOUND', vhost);
    case 'vhost-read-only':
      return new ApiError('VHOST_READ_ONLY', vhost);
    case 'app-exists':
      return app === '' ? new ApiError('VHOST_CREATE_FAILED', vhost) : new ApiError('APP_EXISTS', vhost, app);
    case 'app-missing':
      return new ApiError('APP_NOT_FOUND', vhost, app);
    case 'not-durable':
      return notSaved(new ApiError(failed, vhost, app), error.cause);
  }
}

/** Awaits `change` and throws the API error for its refusal. */
export async function changed<T>(change: Promise<T>, subject: Subject): Promise<T> {
  try {
    return await change;
  } catch (error) {
    throw refusal(error, subject);
  }
}

/** Throws `ApiError` for objects of a file, which the API cannot change. */
export function requireWritable(vhost: VirtualHost): void {
  if (vhost.readOnly) throw new ApiError('VHOST_READ_ONLY', vhost.name);
}

/** The body of a request that takes several items; throws `ApiError` (`BODY_NOT_ARRAY`) for any other value. The items are not checked. */
export function requireArray(body: unknown): readonly unknown[] {
  if (!Array.isArray(body)) throw new ApiError('BODY_NOT_ARRAY');
  return body;
}

/** The body of a request that takes one item; throws `ApiError` (`BODY_NOT_OBJECT`) for any other value. The members are not checked. */
export function requireObject(body: unknown): JsonObject {
  if (!isJsonObject(body)) throw new ApiError('BODY_NOT_OBJECT');
  return body;
}
