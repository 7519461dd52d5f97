/** Errors as sentences for people, and the exit code for programs. */
import { reasonOf } from '../client/error.ts';
import { isFailure, MillraceError, UnreachableError } from '../client/index.ts';
import { messageOf } from '../util/message-of.ts';
import { plainText } from '../util/plain-text.ts';
import { CtlExit, NotThere, UsageProblem } from './command.ts';

/** The attempted command. Members are set as far as the command got. */
export interface Attempt {
  /** Words of the command: `record start`. */
  command?: string;
  /** Its arguments. */
  args?: readonly string[];
  /** The source of its token, as text. */
  tokenFrom?: string;
}

/** The text for standard error, and the exit code. */
export interface Failure {
  readonly text: string;
  readonly code: number;
}

/** Statuses of a taken name and of a missing object, sometimes without further text. */
const CONFLICT = 409;
const NOT_FOUND = 404;
const UNAUTHORIZED = 401;

const UNTRUSTED = 'Its certificate is not trusted on this machine: put it, or its root, into NODE_EXTRA_CA_CERTS=FILE.';
const NO_TLS = 'The port does not use TLS: try http://, or the TLSPort of the API.';
const NO_HTTP = 'The port does not use HTTP, or only with TLS (https://): is it the port of the API (Bind/Managers/API)?';
const NO_WAY = 'The host does not answer: it is down, or a firewall is in between.';
const NO_NAME = 'There is no host of this name.';
/** Hints by the error code of the network. */
const HINTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'Nothing listens there: the server does not run, or this is not the port of its API (Bind/Managers/API).',
  ENOTFOUND: NO_NAME,
  EAI_AGAIN: NO_NAME,
  EHOSTUNREACH: NO_WAY,
  ENETUNREACH: NO_WAY,
  ETIMEDOUT: NO_WAY,
  UND_ERR_CONNECT_TIMEOUT: NO_WAY,
  ECONNRESET: NO_HTTP,
  UND_ERR_SOCKET: NO_HTTP,
  ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NO_TLS,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  ERR_TLS_CERT_ALTNAME_INVALID: 'Its certificate is for another host name: use that name with --api.',
  CERT_HAS_EXPIRED: 'Its certificate has expired.',
};

/** Describes `error`, in the server's words if it sent any. */
export function failureOf(error: unknown, attempt: Attempt): Failure {
  const { command } = attempt;
  if (error instanceof MillraceError) return told(CtlExit.REFUSED, refusals(error, attempt));
  if (error instanceof NotThere) return told(CtlExit.REFUSED, [error.message]);
  if (error instanceof UnreachableError) return told(CtlExit.UNREACHABLE, [error.message], hintFor(error.cause));
  // The client throws a `TypeError` for a name that fits into no path.
  if (error instanceof UsageProblem || (error instanceof TypeError && error.message.startsWith('No path of the API')))
    return told(CtlExit.USAGE, [error.message], `Try 'millrace ctl ${command === undefined ? '' : `${command} `}--help'.`);
  return told(CtlExit.REFUSED, [`unexpected error: ${messageOf(error)}`], 'Is that address the API of a Millrace server of this version?');
}

function told(code: number, sentences: readonly string[], more?: string): Failure {
  const lines = sentences.map((sentence) => `millrace ctl: ${plainText(sentence)}\n`);
  return { code, text: lines.join('') + (more === undefined ? '' : `${more}\n`) };
}

function hintFor(cause: unknown): string | undefined {
  return cause === undefined ? undefined : HINTS[reasonOf(cause)];
}

/** For a batch of several items, each failed item gets a line with its number. */
function refusals({ status, message, reason, items }: MillraceError, { args = [], tokenFrom }: Attempt): string[] {
  const words = (text: string, code: number): string => {
    if (code === CONFLICT && text === 'Conflict') return `${text}: the name is taken`;
    if (text === `HTTP status ${code}`) return `${text}, and no answer of the API: is that its port (Bind/Managers/API)?`;
    if (code === NOT_FOUND && text === 'Not Found' && args.length > 0) return `${text}: ${args.join(' ')}`;
    return code === UNAUTHORIZED && tokenFrom !== undefined ? `${text}: the token is from ${tokenFrom}` : text;
  };
  if (items.length < 2) return [reason === null ? words(message, status) : `${message} (${reason})`];
  return items.flatMap((item, n) =>
    isFailure(item.statusCode) ? [`item ${n + 1} of ${items.length}: ${words(item.message, item.statusCode)}`] : [],
  );
}
