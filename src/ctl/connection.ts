/** Finds the API and its token: from the arguments, from the environment, else from the server on this machine. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { MillraceClient } from '../client/index.ts';
import { ConfigErrors, loadServerConfig, type ServerConfig } from '../config/index.ts';
import { findConfigFile } from '../config/server-config.ts';
import { ACCESS_TOKEN_FILE } from '../state/access-token.ts';
import { bracketed } from '../util/client-address.ts';
import { messageOf } from '../util/message-of.ts';
import { type Option, UsageProblem } from './command.ts';

/** Options of every command. */
export const CONNECTION_OPTIONS: Readonly<Record<string, Option>> = {
  api: { value: 'URL', about: 'address of the API, such as http://127.0.0.1:8081 (or MILLRACE_API)' },
  token: { value: 'TOKEN', about: 'its access token (or MILLRACE_TOKEN, which other users of this machine cannot see)' },
  'token-file': { value: 'FILE', about: 'a file with the access token' },
  config: { value: 'FILE', about: 'configuration of a local server, for address and token' },
  state: { value: 'DIR', about: 'state folder of a local server, for the token that it generated (default: ./state)' },
  timeout: { value: 'SECONDS', about: 'time limit of a request (default: 30)' },
  json: { about: 'print JSON' },
};

const DEFAULT_STATE = './state';
const DEFAULT_TIMEOUT_S = 30;
const MAX_TIMEOUT_S = 86_400;
const NO_TOKEN: Partial<FoundToken> = {};

type Given = (name: string) => string | undefined;

/** A client, and the source of its token as text; null: no token. */
export interface Connection {
  readonly client: MillraceClient;
  readonly tokenFrom: string | null;
}

interface FoundToken {
  readonly token: string;
  readonly from: string;
}

/**
 * A client from the options and the environment. Throws `UsageProblem` if they do not suffice. The token of this machine is never sent to
 * an address from the options, unless the option for its folder or configuration is given too. `open`: no token is needed. `any`: answers
 * need not be JSON.
 */
export function connect(option: Given, env: NodeJS.ProcessEnv, { open = false, any = false } = {}): Connection {
  const given = option('api') ?? nonEmpty(env['MILLRACE_API']);
  const local = given === undefined || option('config') !== undefined || option('state') !== undefined;
  const config = local ? localConfig(option('config'), given === undefined) : null;
  const url = given ?? addressIn(config);
  const found = givenToken(option, env);
  const { token, from = null } = found ?? (local && !open ? localToken(config, option('state') ?? DEFAULT_STATE) : NO_TOKEN);
  if (token === undefined && !open) throw new UsageProblem(`${url} needs its access token: --token, --token-file or MILLRACE_TOKEN`);
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
    throw new UsageProblem('the access token has characters that are not allowed in a header');
  try {
    const settings = { url, timeout: timeoutOf(option('timeout')), ...(!any && { fetch: fetchJson }) };
    return { client: new MillraceClient({ ...settings, ...(token !== undefined && { token }) }), tokenFrom: from };
  } catch (error) {
    if (error instanceof TypeError) throw new UsageProblem(`'${url}' is not an address of an API, such as http://127.0.0.1:8081`);
    throw error;
  }
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

/** An HTML page is not an answer of our API, but of a proxy or another port. */
async function fetchJson(url: string, init: RequestInit): Promise<Response> {
  const answer = await fetch(url, init);
  const type = answer.headers.get('content-type') ?? 'nothing';
  if (!answer.ok || /^(application\/json|text\/event-stream)\b/.test(type)) return answer;
  await answer.body?.cancel();
  throw new Error(`the answer is not from the API: ${type} instead of JSON`);
}

function givenToken(option: Given, env: NodeJS.ProcessEnv): FoundToken | undefined {
  const file = option('token-file');
  if (option('token') !== undefined && file !== undefined) throw new UsageProblem('give --token or --token-file, not both');
  if (file !== undefined) return { token: tokenIn(file), from: file };
  const [given, kept] = [nonEmpty(option('token')), nonEmpty(env['MILLRACE_TOKEN'])];
  if (given !== undefined) return { token: given, from: '--token' };
  return kept === undefined ? undefined : { token: kept, from: 'MILLRACE_TOKEN' };
}

function tokenIn(file: string): string {
  const token = textOf(file).trim();
  if (token === '') throw new UsageProblem(`${file} is empty`);
  return token;
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageProblem(`${file} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

/** Null: the configuration is not needed, and there is no usable one. */
function localConfig(file: string | undefined, needed: boolean): ServerConfig | null {
  if (file === undefined && !needed) return null;
  const found = findConfigFile(file);
  try {
    return loadServerConfig(found).config;
  } catch (error) {
    if (!(error instanceof ConfigErrors)) throw error;
    throw new UsageProblem(`${found} cannot be used, so give the address of the API with --api: ${error.message}`, { cause: error });
  }
}

/** Prefers the plain port: the certificate of the TLS port is for a name that is not known here. */
function addressIn(config: ServerConfig | null): string {
  const api = config?.bind.managers.api;
  const port = api?.port ?? api?.tlsPort;
  if (config === null || api === undefined || port === undefined) {
    throw new UsageProblem('the configuration has no port of the API (Bind/Managers/API), so give its address with --api');
  }
  const [ip = '*'] = api.ip.length > 0 ? api.ip : config.ip;
  const host = ip === '*' ? '127.0.0.1' : ip === '::' ? '::1' : ip;
  return `${api.port === undefined ? 'https' : 'http'}://${bracketed(host)}:${port}`;
}

/** The token of the configuration, else the one that the server generated. A hash in the configuration is not a token. */
function localToken(config: ServerConfig | null, state: string): FoundToken {
  const configured = config?.managers.api.accessToken ?? '';
  if (configured.startsWith('sha256:')) {
    throw new UsageProblem('the configuration has only a hash of the access token: give it with --token-file or MILLRACE_TOKEN');
  }
  if (configured !== '') return { token: configured, from: 'the configuration (Managers/API/AccessToken)' };
  const file = path.join(state, ACCESS_TOKEN_FILE);
  try {
    return { token: tokenIn(file), from: file };
  } catch (error) {
    if (!(error instanceof UsageProblem)) throw error;
    throw new UsageProblem(`${error.message}. Give the token with --token-file or MILLRACE_TOKEN, or the state folder with --state`);
  }
}

function timeoutOf(text: string | undefined): number {
  const seconds = text === undefined ? DEFAULT_TIMEOUT_S : Number(text);
  if (text === '' || !(seconds > 0 && seconds <= MAX_TIMEOUT_S)) throw new UsageProblem(`--timeout is a number of seconds, not '${text}'`);
  return Math.ceil(seconds * 1000);
}
