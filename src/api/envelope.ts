/** The envelope around every answer: `{"message":…,"response":…,"statusCode":…}`. */
import type { ServerResponse } from 'node:http';
import { maskedJson } from '../util/masked-json.ts';
import type { ApiError } from './errors.ts';
import type { FilePart } from './file-answer.ts';
import { writeJson } from './json/json-writer.ts';

/** A route's answer. `body` is the JSON text, ASCII only, so that its length is its number of bytes; empty without a body. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  /** Keys of settings in the answer that have no effect, for a header. */
  readonly ineffective?: readonly string[];
  /** Media type of a body that is not JSON; it may have bytes above 127, one for each character. */
  readonly type?: string;
  /** Sends `size` bytes of a file instead of `body`. */
  readonly file?: FilePart;
  readonly size?: number;
  /** Further headers. */
  readonly headers?: readonly (readonly [name: string, value: string])[];
  /** Reason of the failure, for a header, if the contract's text does not contain it. */
  readonly reason?: string;
  /** All refused parts, for the log. */
  readonly faults?: readonly ApiError[];
  /** Takes over a body without a length, which is written over time and ends when its writer ends it. */
  readonly stream?: (response: ServerResponse) => void;
}

/** Name of this product in headers. */
export const PRODUCT = 'Millrace';
/** Header with the keys of settings in an answer that have no effect. */
export const INEFFECTIVE_HEADER = 'Millrace-Ineffective';
/** Header with `Answer.reason`. */
export const REASON_HEADER = 'Millrace-Reason';

/** One item of a batch response. */
export interface BatchItem {
  readonly status: number;
  readonly json: string;
  /** Like those of a whole response. */
  readonly ineffective?: readonly string[];
  /** The cause of the failure, for the log. */
  readonly fault?: ApiError;
}

const REASONS: Readonly<Record<number, string>> = {
  200: 'OK',
  201: 'Created',
  204: 'No Content',
  206: 'Partial Content',
  207: 'Multi Status',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  408: 'Request Timeout',
  409: 'Conflict',
  413: 'Content Too Large',
  416: 'Range Not Satisfiable',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
};

const CONFLICT = 409;
const OK_TEXT = '{"message":"OK","statusCode":200}';

/** The reason phrase of a status, which is also the message of answers without another text. */
export function reasonPhrase(status: number): string {
  return REASONS[status] ?? 'Unknown';
}

/** 200 with data. `ineffective`: keys of settings in it that have no effect. */
export function ok(response: unknown, ineffective?: readonly string[]): Answer {
  return { status: 200, body: okEnvelope(response), ...(ineffective !== undefined && { ineffective }) };
}

/** 200 with data that is JSON already. */
export function okText(json: string): Answer {
  return { status: 200, body: `{"message":"OK","response":${json},"statusCode":200}` };
}

/** 201 with data. */
export function created(response: unknown): Answer {
  return { status: 201, body: `{"message":"Created","response":${writeJson(response)},"statusCode":201}` };
}

/** A status without data: `{"message":"<reason phrase>","statusCode":N}`. */
export function acknowledge(status = 200): Answer {
  return { status, body: status === 200 ? OK_TEXT : envelope(status, reasonPhrase(status)) };
}

/** The answer to a batch: a bare array; the HTTP status is the common status of all items, else 207. */
export function batch(items: readonly BatchItem[]): Answer {
  const first = items[0]?.status ?? 200;
  const status = items.every((item) => item.status === first) ? first : 207;
  const ineffective = [...new Set(items.flatMap((item) => item.ineffective ?? []))];
  const faults = items.flatMap(({ fault }) => (fault === undefined ? [] : [fault]));
  const body = `[${items.map((item) => item.json).join(',')}]`;
  return { status, body, ...(ineffective.length > 0 && { ineffective }), ...(faults.length > 0 && { faults }) };
}

/** A batch item that succeeded. */
export function batchSuccess(response: unknown, ineffective: readonly string[] = []): BatchItem {
  return { status: 200, json: okEnvelope(response), ...(ineffective.length > 0 && { ineffective }) };
}

/** A batch item that succeeded, without data. */
export function batchAcknowledgement(): BatchItem {
  return { status: 200, json: OK_TEXT };
}

/** A failed batch item: without prefix and suffix, and with only the status if a name is taken. */
export function batchFailure(error: ApiError): BatchItem {
  if (error.status === CONFLICT) return { status: CONFLICT, json: envelope(CONFLICT, reasonPhrase(CONFLICT)), fault: error };
  const message = error.frame === 'config' ? `[Config] ${error.message}` : error.message;
  return { status: error.status, json: envelope(error.status, message), fault: error };
}

/** The answer to a request that failed as a whole. */
export function failure(error: ApiError): Answer {
  const { status } = error;
  const faults = [error];
  if (error.frame !== 'response') return { status, body: envelope(status, framedMessage(error)), faults };
  const words = [reasonPhrase(status), error.message].map((text) => writeJson(text));
  return { status, body: `{"message":${words[0]},"response":${words[1]},"statusCode":${status}}`, faults };
}

function framedMessage(error: ApiError): string {
  switch (error.frame) {
    case 'http':
      return `[HTTP] ${error.message} (${error.status})`;
    case 'config':
      return `[Config] ${error.message}`;
    case 'bare':
    case 'response':
      return error.message;
  }
}

function okEnvelope(response: unknown): string {
  return `{"message":"OK","response":${writeJson(response)},"statusCode":200}`;
}

function envelope(status: number, message: string): string {
  return `{"message":${writeJson(message)},"statusCode":${status}}`;
}

/** `answer` without secrets, for read-only clients; applied to every route. Anything but JSON is unchanged. */
export function maskedAnswer(answer: Answer): Answer {
  return answer.type === undefined ? { ...answer, body: maskedJson(answer.body) } : answer;
}
