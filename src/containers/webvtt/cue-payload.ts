/** Content and settings of a WebVTT cue, without its time (WebVTT §3.1), made safe for every file. */

/** Settings and text of a cue. */
export interface CuePayload {
  /** `line:90% align:start`; empty for none. */
  readonly settings: string;
  /** Lines with the tags and escapes of WebVTT. */
  readonly text: string;
}

const LINE_BREAK = /\r\n?|\n/;
/** A `<` that begins neither a tag of WebVTT nor a time within the cue, so it is text. */
const NO_TAG = /<(?!\/?(?:b|i|u|c|v|lang|ruby|rt)(?=[\s.>])|\/?>|\d{2,}:\d{2}[:.\d]*>)/g;
const NO_ESCAPE = /&(?!(?:amp|lt|gt|nbsp|lrm|rlm);|#(?:\d{1,7}|x[0-9a-fA-F]{1,6});)/g;
const SETTING = /^(?:vertical|line|position|size|align|region):[^\s:]\S*$/;

/** Whether `settings` has the form of cue settings: names and values, in one line. */
export function areCueSettings(settings: string): boolean {
  return !settings.includes('-->') && !/[\r\n\0]/.test(settings) && words(settings).every((word) => SETTING.test(word));
}

/** Text that cannot end its cue: no blank line, no arrow, no `<` or `&` that begins no tag or escape. */
function cueText(text: string): string {
  return text
    .replaceAll('\0', '\ufffd')
    .split(LINE_BREAK)
    .filter((line) => line.trim() !== '')
    .join('\n')
    .replaceAll('-->', '--&gt;')
    .replace(NO_TAG, '&lt;')
    .replace(NO_ESCAPE, '&amp;');
}

/** The bytes of a packet of a subtitle track. Invalid settings are left out. */
export function writeCuePayload({ settings, text }: CuePayload): Buffer {
  const line = areCueSettings(settings) ? words(settings).join(' ') : '';
  return Buffer.from(`${line}\n${cueText(text)}`);
}

/** Reads what `writeCuePayload` wrote. */
export function readCuePayload(data: Uint8Array): CuePayload {
  const whole = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString();
  const end = whole.indexOf('\n');
  return { settings: whole.slice(0, Math.max(0, end)), text: whole.slice(end + 1) };
}

function words(settings: string): string[] {
  return settings.split(/[ \t]+/).filter((word) => word !== '');
}
