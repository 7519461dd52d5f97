/** EXT-X-MEDIA (rfc8216bis §4.4.6.1) of type AUDIO. */
import { type AttributeList, parseAttributeList, quoted, requireAttribute } from './attribute-list.ts';

const TAG = '#EXT-X-MEDIA';

/** An alternative audio rendition; empty texts are left out. */
export interface AudioRendition {
  readonly groupId: string;
  readonly name: string;
  readonly default: boolean;
  readonly autoselect: boolean;
  readonly channels: number;
  readonly language: string;
  readonly characteristics: string;
  readonly uri: string;
}

/** The whole line. Empty language and characteristics are left out. */
export function serializeAudioRendition(rendition: AudioRendition): string {
  const attributes = [
    'TYPE=AUDIO',
    `GROUP-ID=${quoted(rendition.groupId)}`,
    `NAME=${quoted(rendition.name)}`,
    `DEFAULT=${rendition.default ? 'YES' : 'NO'}`,
    `AUTOSELECT=${rendition.autoselect ? 'YES' : 'NO'}`,
    `CHANNELS="${rendition.channels}"`,
  ];
  if (rendition.language !== '') attributes.push(`LANGUAGE=${quoted(rendition.language)}`);
  if (rendition.characteristics !== '') attributes.push(`CHARACTERISTICS=${quoted(rendition.characteristics)}`);
  attributes.push(`URI=${quoted(rendition.uri)}`);
  return `${TAG}:${attributes.join(',')}\n`;
}

/** Reads the text after the colon; the required attributes are there afterwards. */
export function parseMedia(text: string): AttributeList {
  const attributes = parseAttributeList(text);
  for (const name of ['TYPE', 'GROUP-ID', 'NAME']) requireAttribute(attributes, TAG, name);
  return attributes;
}
