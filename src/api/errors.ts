/** The error catalogue of the API: codes, statuses and messages. */

import { diskFault } from '../util/disk-fault.ts';

/** How the text of an error is framed: see `envelope.ts`. */
export type ErrorFrame = 'http' | 'config' | 'bare' | 'response';

interface CatalogueEntry {
  readonly status: number;
  readonly frame: ErrorFrame;
  /** `{0}`, `{1}` … are replaced by the arguments. */
  readonly text: string;
}

/** The contract's text for failures of a deletion or a reload. The reason is in the log, and for some codes in a header. */
const INTERNAL_ERROR = 'Internal Server Error';

/** Every error by its stable code. */
export const CATALOGUE = {
  CONTROLLER_NOT_FOUND: http(404, 'Controller not found'),
  VHOST_NOT_FOUND: http(404, 'Could not find the virtual host: [{0}]'),
  APP_NOT_FOUND: http(404, 'Could not find the application: [{0}/{1}]'),
  APP_OR_STREAM_NOT_FOUND: { status: 404, frame: 'bare', text: 'Could not find the application or stream (404)' },
  STREAM_NOT_FOUND: http(404, 'Could not find the stream: [{0}/{1}/{2}]'),
  PROFILE_NOT_FOUND: http(404, 'Could not find the output profile: [{0}/{1}/{2}]'),
  SESSION_NOT_FOUND: { status: 404, frame: 'response', text: 'Could not find the session' },

  AUTH_HEADER_REQUIRED: http(401, 'Authorization header is required to call API'),
  AUTH_HEADER_INVALID: http(401, 'Invalid authorization header'),
  AUTH_SCHEME_UNSUPPORTED: http(401, 'Not supported credential type: {0}'),
  AUTH_CREDENTIAL_FORMAT: http(401, 'Invalid credential format'),
  AUTH_CREDENTIAL_WRONG: http(401, 'Invalid credential'),
  TOKEN_OTHER_PATH: http(403, 'The access token [{0}] may only be used for {1}'),
  TOKEN_READ_ONLY: http(403, 'The access token [{0}] may only read: {1} is not allowed'),
  HOST_NOT_ALLOWED: http(403, 'The host name is not allowed: [{0}]'),
  VHOST_READ_ONLY: http(403, 'The VirtualHost is read-only: [{0}]'),

  RECORDING_NOT_FOUND: http(404, 'Could not find the recorded file: [{0}]'),
  RECORDING_EMPTY: http(404, 'Nothing was recorded in this span, or its files are gone'),
  RECORDING_TOKEN: http(403, 'The token is not good for this recording, or not any longer'),
  RECORDING_SPAN: http(400, 'The span cannot be played at once: {0}'),
  RECORDING_UNPLAYABLE: http(409, 'The recorded file cannot be played in pieces: {0}'),
  RANGE_OUTSIDE: http(416, 'The file has {0} bytes'),
  RECORDING_BUSY: http(503, 'Too many recordings are looked at: ask again'),

  JSON_SYNTAX: http(400, '[JSON] {0}'),
  BODY_NOT_ARRAY: http(400, 'Request body must be an array'),
  BODY_NOT_OBJECT: http(400, 'Request body must be an object'),
  BODY_TOO_LARGE: http(413, 'Request body must not exceed {0} bytes'),
  MEMBER_INVALID: http(400, 'Invalid [{0}] parameter: it must be {1}'),
  MEMBER_UNKNOWN: http(400, 'Unknown parameter [{0}]: did you mean [{1}]?'),
  CONFIG_INVALID: { status: 400, frame: 'config', text: '{0}' },
  /** A configuration error caused by a change of one profile of an existing application. */
  PROFILE_CONFIG_INVALID: http(400, '[Config] {0}'),

  VHOST_EXISTS: http(409, 'The virtual host already exists: [{0}]'),
  VHOST_CREATE_FAILED: http(400, 'Failed to create the virtual host: [{0}]'),
  VHOST_NOT_SAVED: http(500, 'Failed to save the virtual host: [{0}]'),
  VHOST_DELETE_FAILED: http(500, INTERNAL_ERROR),

  APP_EXISTS: http(409, 'Could not create the application: [{0}/{1}] already exists'),
  APP_CREATE_FAILED: http(500, 'Failed to create the application: [{0}/{1}]'),
  APP_DELETE_FAILED: http(500, INTERNAL_ERROR),
  APP_MEMBER_FIXED: http(400, 'Cannot change [{0}] using this API'),

  PROFILE_EXISTS: http(409, 'The output profile "{0}" already exists'),
  PROFILE_MEMBERS_MISSING: http(400, 'Invalid request body: "name", "outputStreamName", "encodes" are required'),
  PROFILE_MEMBERS_WRONG: http(400, 'Invalid request body: "name" must be a string and "encodes" must be an object'),
  PROFILE_ENCODES_MISSING: http(400, 'Invalid request body: "encodes" must have at least one item (videos array or audios array)'),
  PROFILE_VIDEOS_WRONG: http(400, 'Invalid request body: "encodes.videos" must be an array'),
  PROFILE_AUDIOS_WRONG: http(400, 'Invalid request body: "encodes.audios" must be an array'),
  PROFILE_ENCODES_EMPTY: http(
    400,
    'Invalid request body: "encodes" must have at least one item (videos array or audios array) and each item must have at least one item',
  ),
  PROFILE_NAME_FIXED: http(400, 'The {0} entry cannot be specified in the modification'),

  KEY_EXISTS: http(409, 'The {0} already exists: [{1}]'),
  KEY_LIMIT: http(400, 'Too many of the kind {0}: an application may have {1}'),
  KEY_NOT_FOUND: http(404, 'Could not find the {0}: [{1}]'),
  KEY_NOT_SAVED: http(500, 'Failed to save the keys of the application: [{0}/{1}]'),

  STREAM_REQUEST_INCOMPLETE: http(400, 'Stream name or urls is required'),
  STREAM_URLS_EMPTY: http(400, 'Urls must be at least one'),
  STREAM_URL_WRONG: http(400, 'Url must be a string'),
  STREAM_URLS_DIFFER: http(400, 'Urls must have the same scheme'),
  STREAM_NAME_INVALID: http(400, 'Stream name must not be empty or contain / : ? # or white space: [{0}]'),
  STREAM_PATH_REFUSED: http(400, 'Invalid path: {0}'),
  STREAMS_TOO_MANY: http(400, 'At most {0} streams may be asked for at once, not {1}'),
  STREAM_EXISTS: http(409, 'Stream already exists'),
  STREAM_PULL_FAILED: http(502, 'Could not pull the stream : {0}'),

  RECORD_DISABLED: http(404, 'Could not find application: [{0}/{1}]'),
  RECORD_INCOMPLETE: http(400, 'There is no required parameter [{0}]'),
  RECORD_SPLIT_TWICE: http(400, '[Interval] and [Schedule] cannot be used at the same time'),
  RECORD_SCHEDULE_INVALID: http(400, 'Invalid [schedule] parameter'),
  RECORD_PATH_REFUSED: http(400, 'Invalid path: {0}'),
  RECORD_EXISTS: http(409, 'Duplicate ID already exists'),
  RECORD_LIMIT: http(400, 'Too many recordings: {0}'),
  RECORD_NOT_FOUND: http(404, 'There is no record information related to the ID [{0}]'),
  RECORD_NOT_SAVED: http(500, 'Failed to save the recording task: [{0}]'),

  DUMP_INCOMPLETE: http(400, 'id, outputStreamName and outputPath are required'),
  DUMP_STREAM_MISSING: http(400, 'outputStreamName is required'),
  DUMP_PATH_REFUSED: http(400, 'Invalid path: {0}'),
  DUMP_OUTPUT_NOT_FOUND: http(404, 'Could not find output stream: [{0}/{1}/{2}]'),
  DUMP_LLHLS_NOT_FOUND: http(404, 'Could not find LLHLS stream: [{0}/{1}/{2}]'),
  DUMP_START_FAILED: http(500, 'Could not start dump: [{0}/{1}/{2}] ({3})'),
  DUMP_STOP_FAILED: http(500, 'Could not stop dump: [{0}/{1}/{2}] ({3})'),

  EVENT_INCOMPLETE: http(400, 'eventFormat(string) and events(array) are required'),
  EVENTS_MISSING: http(400, 'events(array) is required'),
  EVENT_FORMAT_UNSUPPORTED: http(400, 'eventFormat is not supported: [{0}]'),
  EVENT_TYPE_WRONG: http(400, 'eventType must be string'),
  EVENT_TYPE_UNSUPPORTED: http(400, 'eventType is not supported: [{0}]'),
  EVENT_UNMADE: http(400, 'Could not make events data'),
  EVENT_FRAME_MISSING: http(400, 'frameType is required in events'),
  EVENT_FRAME_UNSUPPORTED: http(400, 'frameType is not supported: [{0}]'),
  EVENT_CUE_MISSING: http(400, 'cueType is required in events'),
  EVENT_CUE_UNSUPPORTED: http(400, 'cueType is not supported: [{0}]'),
  EVENT_SPLICE_UNSUPPORTED: http(400, 'Now only spliceInsert is supported'),
  EVENT_ID_MISSING: http(400, 'id is required in events'),
  EVENT_SPLICE_TYPE_MISSING: http(400, 'type is required in events'),
  EVENT_SPLICE_TYPE_WRONG: http(400, "type must be 'out' or 'in'"),
  EVENT_NOT_INJECTED: http(500, `${INTERNAL_ERROR} - Could not inject event: [{0}/{1}/{2}]`),
  CONCLUSION_NOT_INJECTED: http(500, `${INTERNAL_ERROR} - Could not inject ConcludeLive event: [{0}/{1}/{2}]`),

  SUBTITLES_INCOMPLETE: http(400, 'format(string) and data(array) are required'),
  SUBTITLES_FORMAT_UNSUPPORTED: http(400, 'format is not supported: [{0}]'),
  SUBTITLES_LABEL_MISSING: http(400, 'label(string) and subtitles(array) are required'),
  SUBTITLES_TEXT_MISSING: http(400, 'text(string) is required in subtitles'),
  SUBTITLES_NO_TIME: http(500, 'Could not get current timestamp: [{0}/{1}/{2}]'),
  SUBTITLES_NOT_SENT: http(500, 'Could not send WebVTT frame: [{0}/{1}/{2}]'),

  PUSH_DISABLED: http(404, 'Could not find application: [{0}/{1}]'),
  PUSH_PROTOCOL_UNKNOWN: http(400, "Could not find protocol '{0}': [{1}/{2}]"),
  PUSH_INCOMPLETE: http(400, 'There is no required parameter [{0}]'),
  PUSH_URL_MALFORMED: http(400, 'Could not parse url'),
  PUSH_URL_UNSUPPORTED: http(400, 'Unsupported protocol'),
  PUSH_PORT_INVALID: http(400, 'Could not parse url: its port must be from 1 to 65535'),
  PUSH_MODE_UNSUPPORTED: http(400, 'Unsupported connection mode'),
  PUSH_LISTEN_UNSUPPORTED: http(400, 'Unsupported tcp listen'),
  PUSH_KEY_INVALID: http(400, 'Invalid [streamKey] parameter'),
  PUSH_EXISTS: http(409, 'Duplicate ID'),
  PUSH_LIMIT: http(400, 'Too many pushes: {0}'),
  PUSH_NOT_FOUND: http(404, "Could not find id '{0}': [{1}/{2}]"),
  PUSH_NOT_SAVED: http(500, 'Failed to save the push task: [{0}]'),

  PROVIDER_FORBIDDEN: { status: 403, frame: 'bare', text: 'Forbidden' },
  CHANNEL_BODY_INVALID: http(400, 'Invalid request body'),
  CHANNEL_EXISTS: http(409, "Stream '{0}' already exists"),
  CHANNEL_NOT_SCHEDULED: http(400, 'Stream is not a scheduled stream'),
  CHANNEL_OF_ANOTHER_KIND: http(404, 'Could not get the scheduled stream'),
  SCHEDULE_INVALID: http(400, '{0}'),
  SCHEDULE_STREAM_FIXED: http(400, 'Stream object could not be patched'),
  SCHEDULE_PATCH_INVALID: http(400, 'Could not patch the schedule'),
  SCHEDULE_NOT_SAVED: http(500, 'Could not save the schedule file {0}'),
  SCHEDULE_NOT_DELETED: http(500, 'Could not delete the schedule file {0}'),
  MUX_DISABLED: { status: 403, frame: 'bare', text: 'Forbidden' },
  MUX_APP_NOT_FOUND: http(404, 'Could not get the multiplex application'),
  MUX_NOT_FOUND: http(404, 'Could not get the multiplex stream <{0}>'),
  MUX_NAME_EMPTY: http(400, 'Invalid stream name'),
  MUX_BODY_WRONG: http(400, 'Invalid request body'),
  MUX_INVALID: http(400, '{0}'),
  MUX_EXISTS: http(409, "Stream '{0}' already exists"),
  MUX_NOT_SAVED: http(500, INTERNAL_ERROR),
  MUX_NOT_DELETED: http(500, INTERNAL_ERROR),

  CERTIFICATE_RELOAD_FAILED: http(500, INTERNAL_ERROR),
  API_TLS_DISABLED: http(400, 'TLS is not enabled for the API Server'),
  API_CERTIFICATE_FAILED: http(500, 'Failed to create a certificate for API Server'),

  MALFORMED_REQUEST: http(400, 'Malformed request: {0}'),
  REQUEST_TIMEOUT: http(408, 'The request did not arrive in time'),
  HEADERS_TOO_LARGE: http(431, 'Request headers are too large'),
  METHOD_UNKNOWN: http(501, 'Not implemented: unknown method'),
  NOT_IMPLEMENTED: http(501, 'Not implemented yet: {0}'),
  EVENT_FOLLOWERS_FULL: http(503, 'Too many clients follow the events of the server'),
  LOG_FOLLOWERS_FULL: http(503, 'Too many clients follow the log of the server'),
  SERVER_STOPPING: http(503, 'The server is stopping'),
  INTERNAL: http(500, INTERNAL_ERROR),
} as const satisfies Record<string, CatalogueEntry>;

/** Keys of the catalogue, for code only: clients see the status and the text. */
export type ErrorCode = keyof typeof CATALOGUE;

/** A request that cannot be answered with success. Callers branch on `code`; clients see `status` and the framed text. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly frame: ErrorFrame;

  /** `args` replace the places in the catalogue's text. */
  constructor(code: ErrorCode, ...args: readonly string[]) {
    const entry: CatalogueEntry = CATALOGUE[code];
    super(entry.text.replace(/\{(\d)\}/g, (_place, index: string) => args[Number(index)] ?? ''));
    this.code = code;
    this.status = entry.status;
    this.frame = entry.frame;
  }
}

/** `error` for a change that could not be made durable: its text names a fault of the disk, unless the contract fixes the text. */
export function notSaved(error: ApiError, cause: unknown): ApiError {
  const why = diskFault(cause);
  if (why !== null && error.message !== INTERNAL_ERROR) error.message += `: ${why}`;
  return causedBy(error, cause);
}

/** The fault of the disk behind an error whose text is fixed by the contract; null for other causes. */
export function diskReason({ message, cause }: ApiError): string | null {
  return message === INTERNAL_ERROR ? diskFault(cause) : null;
}

/** `error` with its cause, which goes to the log, and for some codes to a header. */
export function causedBy(error: ApiError, cause: unknown): ApiError {
  error.cause = cause;
  return error;
}

function http(status: number, text: string): CatalogueEntry {
  return { status, frame: 'http', text };
}
