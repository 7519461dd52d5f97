/** Forms of texts that become headers, URLs or names, checked wherever they are accepted. */
import { hasHiddenCharacter } from '../util/hidden-characters.ts';
import { shown } from './problem.ts';

/**
 * - `header-name`, `header-value`: of an answer over HTTP
 * - `quoted`: inside a quoted string of a header
 * - `host`, `origin`: compared with what clients send; `*` and `?` match
 * - `host-name`: one host, as URLs name it
 * - `location`: beginning of the path of a request
 * - `source`: a URL without its scheme, `host[:port][/path]`
 * - `ice-server`: URL of a STUN or TURN server, told to peers in a header
 * - `url`: of a control server
 * - `stream-name`: a name in which `${Port}` stands for a number
 * - `written-path`: where files are made, macros included
 */
export type TextForm =
  | 'header-name'
  | 'header-value'
  | 'quoted'
  | 'host'
  | 'origin'
  | 'host-name'
  | 'location'
  | 'source'
  | 'ice-server'
  | 'url'
  | 'stream-name'
  | 'written-path';

/** `grave`: the value is unsafe, so a configuration file that contains it is refused as well. */
export interface TextFault {
  readonly text: string;
  readonly grave: boolean;
}

/** RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~\da-z-]+$/i;
/** RFC 9110 section 5.5, in the characters that Node.js sends. */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const BLANK = /\s/u;
/** Inside the angle brackets of a `Link` header. The reference server's example has one without a scheme. */
const ICE_SERVER = /^[^\s<>"\\^`{|}]+$/;
const VISIBLE_ASCII = /^[\x21-\x7e]*$/;
/** An address in brackets is one of IPv6. */
const HOST = /^(?:\[[\da-f:.]+\]|[^\s/?#@:[\]]+)$/i;
const PORT_MACRO = '${Port}';

/** Headers that set the length of an answer or the fate of its connection: only the server may write them. HTTP/2 forbids most of them. */
const FRAMING: readonly string[] = [
  'connection',
  'content-length',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

type Check = (text: string) => TextFault | undefined;

const grave = (text: string): TextFault => ({ text, grave: true });
const slight = (text: string): TextFault => ({ text, grave: false });

const CHECKS: Readonly<Record<TextForm, Check>> = {
  'header-name': (text) => {
    if (!TOKEN.test(text)) return grave('must be the name of a header: letters, digits and -, without blanks');
    return FRAMING.includes(text.toLowerCase()) ? grave('must not be a header that tells where an answer ends') : undefined;
  },
  'header-value': (text) =>
    FIELD_VALUE.test(text) ? undefined : grave('must be the value of a header: one line without control characters'),
  quoted: (text) => (FIELD_VALUE.test(text) ? undefined : grave('must be one line without control characters')),
  host: (text) => {
    if (BLANK.test(text) || hasHiddenCharacter(text)) return slight('must not contain white space or characters that cannot be seen');
    return /[/#@]/.test(text) ? slight('must be a host name or an address, without scheme and path') : undefined;
  },
  origin: (text) =>
    VISIBLE_ASCII.test(text) && !hasHiddenCharacter(text) ? undefined : slight('must be an origin such as https://*.example.org'),
  'host-name': (text) =>
    HOST.test(text) && !hasHiddenCharacter(text) ? undefined : slight('must be a host name or an address, without port'),
  location: (text) =>
    BLANK.test(text) || hasHiddenCharacter(text) ? slight('must be a path such as /app/stream, without white space') : undefined,
  source: (text) => {
    if (text === '') return slight('must not be empty');
    return hasHiddenCharacter(text) ? slight('must not contain characters that cannot be seen') : undefined;
  },
  'ice-server': (text) =>
    ICE_SERVER.test(text) && VISIBLE_ASCII.test(text) ? undefined : grave('must be a URL such as turn:host:port?transport=tcp'),
  url: (text) => (text === '' || isWebUrl(text) ? undefined : slight('must be a URL that begins with http:// or https://')),
  'written-path': (text) => {
    if (hasHiddenCharacter(text)) return slight('must not contain characters that cannot be seen');
    return text.split('/').includes('..') ? slight('must not contain ".."') : undefined;
  },
  'stream-name': (text) => nameRule(text.replaceAll(PORT_MACRO, '1')),
};

/** Why `text` is invalid as `form`, to be appended to its name; undefined if it is valid. */
export function textFault(form: TextForm, text: string): TextFault | undefined {
  return CHECKS[form](text);
}

function isWebUrl(text: string): boolean {
  return /^https?:\/\/\S+$/i.test(text) && !hasHiddenCharacter(text) && URL.canParse(text);
}

/** Why `name` cannot be part of a URL; undefined if it can. `grave`: it cannot name anything. */
export function nameRule(name: string): TextFault | undefined {
  if (name === '') return { text: 'must not be empty', grave: true };
  if (name === '.' || name === '..') return { text: `must not be ${shown(name)}`, grave: true };
  if (/[\s/?#:]/u.test(name)) return { text: 'must not contain "/", "?", "#", ":" or white space', grave: false };
  if (hasHiddenCharacter(name)) return { text: 'must not contain characters that cannot be seen', grave: false };
  return undefined;
}
