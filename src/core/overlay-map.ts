/** The map file that lays images over the video of streams by their names. */
import type { XmlElement } from '../config/xml.ts';
import { ArithmeticError, calculate } from '../util/arithmetic.ts';
import { compileWildcard } from '../util/wildcard.ts';
import { entriesFor, type MapPart, readStreamMap, type StreamMapEntry } from './tasks/stream-map.ts';
import { type OverlayPlace, overlayNames } from './transcoding.ts';

/** An image of the map: where it is read from, and where it is laid. */
export interface MappedOverlay extends OverlayPlace {
  readonly url: string;
}

/** An entry of the map. */
export interface OverlayMapEntry<Overlay extends OverlayPlace = MappedOverlay> extends StreamMapEntry {
  /** Patterns of the encodes whose frames get the images; empty: all. */
  readonly variantNames: readonly string[];
  /** Later ones lie above earlier ones. */
  readonly overlays: readonly Overlay[];
}

/** More images over one video would take too much of the machine's time, and hide the video. */
const MAX_OVERLAYS = 16;
/** Pixels of a side that is not told. */
const DEFAULT_SIDE = '100';
/** Example sizes for checking the sums: a sum that fails with them fails with all sizes, except for a division by zero. */
const SOME_SIZE = { frame: { width: 1280, height: 720 }, image: { width: 100, height: 100 } };

/** The entries that are enabled. Throws `ConfigError` with the line at fault. */
export function parseOverlayMap(root: XmlElement): OverlayMapEntry[] {
  return readStreamMap(root, { root: 'OverlayMap', item: 'OverlayInfo', streamName: 'OutputStreamName' }, (entry) => {
    const { streamName, variantNames } = entry;
    const overlays = entry.parts('Overlay').map(overlayOf);
    if (overlays.length > MAX_OVERLAYS)
      throw entry.fault('Overlay', `is there ${overlays.length} times, at most ${MAX_OVERLAYS} are taken`);
    return { streamName, variantNames, overlays };
  });
}

/** Images over the frames of an encode of an outbound stream, from bottom to top. */
export function overlaysFor<Overlay extends OverlayPlace>(
  entries: readonly OverlayMapEntry<Overlay>[],
  stream: { readonly name: string; readonly sourceName: string },
  variantName: string,
): readonly Overlay[] {
  return entriesFor(entries, stream)
    .filter(({ variantNames }) => variantNames.length === 0 || variantNames.some((pattern) => compileWildcard(pattern)(variantName)))
    .flatMap(({ overlays }) => overlays)
    .slice(0, MAX_OVERLAYS);
}

function overlayOf(part: MapPart): MappedOverlay {
  const url = part.text('Url');
  if (url === '') throw part.fault('Url', 'is missing');
  const opacityText = part.text('Opacity');
  const opacity = opacityText === '' ? 100 : Number(opacityText);
  if (!(opacity >= 0 && opacity <= 100))
    throw part.fault('Opacity', `must be a number from 0 to 100, but is ${JSON.stringify(opacityText)}`);
  const sum = (name: string, absent: string): string => {
    const text = part.text(name) || absent;
    try {
      calculate(text, overlayNames(SOME_SIZE.frame, SOME_SIZE.image));
    } catch (error) {
      if (error instanceof ArithmeticError) throw part.fault(name, `${error.message}: ${JSON.stringify(text)}`);
      throw error;
    }
    return text;
  };
  return {
    url,
    opacity: opacity / 100,
    ...{ left: sum('Left', '0'), top: sum('Top', '0'), width: sum('Width', DEFAULT_SIDE), height: sum('Height', DEFAULT_SIDE) },
  };
}
