/** `Oven-Capabilities` of a WHIP request: the final frame sizes, because browsers start with smaller ones. */

/** The maximum that a browser will send of one layer. */
export interface VideoCapability {
  /** Pixels; 0: unknown. */
  readonly width: number;
  readonly height: number;
  /** Frames per second; 0: unknown. */
  readonly framerate: number;
}

const ENTRY = /^(?:rid:([\w-]{1,32}):)?max_(width|height|fps)=(\d{1,5}(?:\.\d{1,4})?)$/;
/** Three for each of the layers that are taken. */
const MAX_ENTRIES = 24;
/** Encodes have this size: at most the maximum of H.264. */
const LARGEST = { width: 8192, height: 8192, fps: 300 } as const;

/**
 * `max_width=1280, max_height=720, max_fps=30`, for a simulcast layer with the prefix `rid:<rid>:`. The result is by layer, '' without one.
 * Unknown parts are ignored: a publisher must not fail because of them.
 */
export function readCapabilities(header: string): ReadonlyMap<string, VideoCapability> {
  const found = new Map<string, VideoCapability>();
  for (const entry of header.split(',').slice(0, MAX_ENTRIES)) {
    const [, rid = '', member = '', text = ''] = ENTRY.exec(entry.trim()) ?? [];
    const value = Number(text);
    if (member !== 'width' && member !== 'height' && member !== 'fps') continue;
    if (value <= 0 || value > LARGEST[member] || (member !== 'fps' && !Number.isInteger(value))) continue;
    const known = found.get(rid) ?? { width: 0, height: 0, framerate: 0 };
    found.set(rid, { ...known, [member === 'fps' ? 'framerate' : member]: value });
  }
  return found;
}
