/** EXT-X-MEDIA (rfc8216bis §4.4.6.1) of type AUDIO. */
import { quoted } from './attribute-list.ts';

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
