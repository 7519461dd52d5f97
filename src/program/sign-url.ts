/** `millrace sign-url`: prints a URL that a virtual host with a signed policy admits. */
import { readFileSync } from 'node:fs';
import { type Policy, queryParameter, type SigningKeys, signUrl } from '../access/signed-url.ts';
import { ConfigErrors, loadServerConfig } from '../config/index.ts';
import { findConfigFile } from '../config/server-config.ts';
import { HostNameTable } from '../core/host-name-table.ts';
import { AddressSet } from '../util/address-set.ts';
import { messageOf } from '../util/message-of.ts';
import { parseArguments } from '../util/parse-arguments.js';
import { ExitCode } from './command-line.js';

/** Environment variable with the key, instead of a configuration: every user of the machine can read arguments. */
const SECRET_VARIABLE = 'MILLRACE_SECRET_KEY';
const DEFAULT_KEYS = { policy: 'policy', signature: 'signature' };
const OPTIONS = {
  config: { type: 'string' },
  vhost: { type: 'string' },
  'secret-file': { type: 'string' },
  'policy-key': { type: 'string' },
  'signature-key': { type: 'string' },
  expire: { type: 'string' },
  activate: { type: 'string' },
  'stream-expire': { type: 'string' },
  'allow-ip': { type: 'string' },
  'real-ip': { type: 'string' },
  for: { type: 'string' },
} as const;
const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const DIRECTIONS: Readonly<Record<string, Policy['direction']>> = { publish: 'incoming', play: 'outgoing' };

/** A sentence about the arguments. */
class SignProblem extends Error {}

type Values = ReturnType<typeof parseArguments<{ options: typeof OPTIONS }>>['values'];

/** Runs the command with the arguments after its name; resolves with the exit code. */
export function signUrlCommand(args: readonly string[], { now = Date.now(), env = process.env } = {}): number {
  try {
    process.stdout.write(`${signedBy(args, now, env)}\n`);
    return ExitCode.CLEAN;
  } catch (error) {
    process.stderr.write(`millrace sign-url: ${messageOf(error)}\n`);
    return ExitCode.USAGE;
  }
}

/** The signed URL. Throws an Error whose message is a sentence for the user. */
export function signedBy(args: readonly string[], now: number, env: NodeJS.ProcessEnv): string {
  const { values, positionals } = parseArguments({ args: [...args], allowPositionals: true, options: OPTIONS });
  const [url, ...more] = positionals;
  if (url === undefined || more.length > 0) throw new SignProblem('give one URL, e.g. ws://media.example:3333/app/stream');
  requireWhole(url);
  const keys = keysFor(url, values, env);
  for (const key of [keys.policyQueryKeyName, keys.signatureQueryKeyName])
    if (queryParameter(url, key) !== null) throw new SignProblem(`the URL has '${key}' already`);
  return signUrl(url, policyOf(values, now), keys);
}

/** The server inserts its listening port, so a URL without a port cannot be signed. */
function requireWhole(url: string): void {
  const match = /^(rtmps?|srt|wss?|https?):\/\/(\[[^\]]+\]|[^/:?]+)(:\d+)?\/[^/?]+(?:\/[^?]*)?(\?.*)?$/.exec(url);
  if (match === null) throw new SignProblem(`'${url}' is not a complete URL of rtmp, rtmps, srt, ws, wss, http or https with a path`);
  const [, scheme, , port] = match;
  if (scheme === 'srt' || port !== undefined) return;
  throw new SignProblem('the URL needs its port, which is part of the signature, as in http://media.example:3333/app/stream/llhls.m3u8');
}

function keysFor(url: string, values: Values, env: NodeJS.ProcessEnv): SigningKeys {
  const file = values['secret-file'];
  const secretKey = file === undefined ? env[SECRET_VARIABLE] : readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  if (secretKey === undefined) return configuredKeys(url, values);
  if (secretKey === '') throw new SignProblem('the secret key is empty');
  return {
    secretKey,
    policyQueryKeyName: values['policy-key'] ?? DEFAULT_KEYS.policy,
    signatureQueryKeyName: values['signature-key'] ?? DEFAULT_KEYS.signature,
  };
}

function configuredKeys(url: string, values: Values): SigningKeys {
  const file = findConfigFile(values.config);
  const { virtualHosts } = configOf(file);
  const host = (/^[a-z]+:\/\/(?:\[([^\]]+)\]|([^/:?]+))/.exec(url) ?? []).slice(1).find((part) => part !== undefined) ?? '';
  const hosts = new HostNameTable(virtualHosts.map(({ name, host: own }) => ({ name, hostNames: own?.names ?? [] })));
  const byName = url.startsWith('srt:') && virtualHosts.some(({ name }) => name === host) ? host : undefined;
  const name = values.vhost ?? byName ?? hosts.find(host);
  const vhost = virtualHosts.find((candidate) => candidate.name === name);
  if (vhost === undefined) {
    throw new SignProblem(
      values.vhost === undefined
        ? `no virtual host of ${file} serves '${host}': name one with --vhost`
        : `${file} has no virtual host '${name}'`,
    );
  }
  if (vhost.signedPolicy === undefined) throw new SignProblem(`virtual host '${vhost.name}' of ${file} has no SignedPolicy`);
  return vhost.signedPolicy;
}

function configOf(file: string) {
  try {
    return loadServerConfig(file).config;
  } catch (error) {
    if (error instanceof ConfigErrors) throw new SignProblem(`${error.message}\n${file} cannot be used.`, { cause: error });
    throw error;
  }
}

function policyOf(values: Values, now: number): Policy {
  if (values.expire === undefined) throw new SignProblem('--expire is required: until when a session can start, e.g. --expire 2h');
  const urlExpire = timeOf('expire', values.expire, now);
  if (urlExpire <= now) throw new SignProblem('--expire is in the past');
  const activate = values.activate === undefined ? undefined : timeOf('activate', values.activate, now);
  if (activate !== undefined && activate >= urlExpire) throw new SignProblem('--activate is not before --expire');
  const streamExpire = values['stream-expire'] === undefined ? undefined : timeOf('stream-expire', values['stream-expire'], now);
  if (streamExpire !== undefined && streamExpire <= now) throw new SignProblem('--stream-expire is in the past');
  const direction = values.for === undefined ? undefined : DIRECTIONS[values.for];
  if (values.for !== undefined && direction === undefined) throw new SignProblem(`--for is publish or play, not '${values.for}'`);
  return {
    url_expire: urlExpire,
    ...(activate !== undefined && { url_activate: activate }),
    ...(streamExpire !== undefined && { stream_expire: streamExpire }),
    ...rangeOf('allow_ip', values['allow-ip']),
    ...rangeOf('real_ip', values['real-ip']),
    ...(direction !== undefined && { direction }),
  };
}

function rangeOf(member: 'allow_ip' | 'real_ip', range: string | undefined): Partial<Policy> {
  if (range === undefined) return {};
  if (!AddressSet.isAddress(range)) {
    throw new SignProblem(`--${member.replace('_', '-')} is an address or a network such as 192.0.2.0/24, not '${range}'`);
  }
  return { [member]: range };
}

/** `90s`, `30m`, `2h`, `7d` from now on, or a point in time in ISO 8601 with its zone. */
function timeOf(option: string, text: string, now: number): number {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  if (count !== undefined && unit !== undefined) return now + Number(count) * (UNITS[unit] ?? 0);
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time))
    throw new SignProblem(`--${option} is a duration such as 90s, 30m, 2h or 7d, or a time such as 2030-01-31T12:00:00Z, not '${text}'`);
  return time;
}
