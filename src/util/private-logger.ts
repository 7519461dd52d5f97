import type { Logger } from './logger.ts';

/** Written in place of a hidden address. */
export const HIDDEN_ADDRESS = 'xxx.xxx.xxx.xxx';

/** IPv4, and IPv6 in brackets as in URLs, each with or without a port. */
const ADDRESS = /(?:\b\d{1,3}(?:\.\d{1,3}){3}\b|\[[0-9a-f:.%]*:[0-9a-f:.%]*\])(:\d+)?/gi;
/** Fields that hold nothing but the address of a client. */
const CLIENT_FIELDS: ReadonlySet<string> = new Set(['peer']);
/** Fields about the server itself. */
const OWN_FIELDS: ReadonlySet<string> = new Set(['host', 'address', 'config', 'file', 'setAside', 'state', 'version']);

/** A logger that writes to `logger`, without the addresses of clients (`PrivacyProtection`). */
export function hidingAddresses(logger: Logger): Logger {
  return {
    debug: (fields, message) => logger.debug(withoutAddresses(fields), textWithout(message)),
    info: (fields, message) => logger.info(withoutAddresses(fields), textWithout(message)),
    warn: (fields, message) => logger.warn(withoutAddresses(fields), textWithout(message)),
    error: (fields, message) => logger.error(withoutAddresses(fields), textWithout(message)),
    child: (fields) => hidingAddresses(logger.child(withoutAddresses(fields))),
    get limited() {
      return hidingAddresses(logger.limited);
    },
  };
}

function withoutAddresses(fields: object): object {
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, valueWithout(key, value)]));
}

function valueWithout(key: string, value: unknown): unknown {
  if (typeof value !== 'string' || OWN_FIELDS.has(key)) return value;
  return CLIENT_FIELDS.has(key) ? HIDDEN_ADDRESS : textWithout(value);
}

/** `text` with the addresses of clients replaced. */
export function textWithout(text: string): string {
  return text.replace(ADDRESS, (_address, port: string | undefined) => (port === undefined ? HIDDEN_ADDRESS : `${HIDDEN_ADDRESS}:xxx`));
}
