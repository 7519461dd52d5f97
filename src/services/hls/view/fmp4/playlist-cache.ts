/** Playlist texts by track and form, rendered once per change and cut where a client's query goes. */
import { serializeRenditionReport } from '../../../../playlist/media-tags.ts';
import type { StreamModel, TrackModel } from '../../wire/fmp4/stream-model.ts';
import { TAIL_MARK } from '../../wire/fmp4/update.ts';
import type { LlhlsViewSettings } from '../../wire/view-settings.ts';
import { MediaPlaylistText, type PlaylistForm } from './media-playlist-text.ts';

const END = ['#EXT-X-ENDLIST\n'];
const NOTHING = [''];
/** Texts kept, by name and base. */
const MAX_MULTIVARIANTS = 256;

interface Template {
  version: number;
  pieces: readonly string[];
}

/** A body and the text after it, contiguous. */
interface Whole {
  readonly body: readonly string[];
  readonly ending: readonly string[];
  readonly pieces: readonly string[];
}

interface TrackTexts {
  readonly track: TrackModel;
  readonly text: MediaPlaylistText;
  readonly forms: Map<number, Template>;
  /** By form and suffix; there are few of either. */
  readonly wholes: Map<string, Whole>;
  reports: Template;
}

/** One for each view. Renders on request, and only what changed in the model. */
export class PlaylistCache {
  readonly #model: StreamModel;
  readonly #settings: LlhlsViewSettings;
  readonly #tracks = new Map<number, TrackTexts>();
  readonly #multivariants = new Map<string, { text: string; pieces: readonly string[] }>();

  constructor(model: StreamModel, settings: LlhlsViewSettings) {
    this.#model = model;
    this.#settings = settings;
  }

  /**
   * The multivariant playlist `fileName`, cut behind its URIs; null when there is none of that name. The same array until it changes.
   * `base` stands in front of the names of media playlists instead of what is there.
   */
  multivariant(fileName: string, base = ''): readonly string[] | null {
    const current = this.#model.multivariants.get(fileName);
    if (current === undefined) return null;
    const key = `${base} ${fileName}`;
    let kept = this.#multivariants.get(key);
    if (kept?.text !== current.text) {
      const pieces = current.text.split(TAIL_MARK);
      kept = { text: current.text, pieces: base === '' ? pieces : pieces.map((piece) => moved(piece, base)) };
      // Bases are the choice of a control server.
      if (this.#multivariants.size >= MAX_MULTIVARIANTS) this.#multivariants.clear();
      this.#multivariants.set(key, kept);
    }
    return kept.pieces;
  }

  /**
   * The media playlist of `track`, cut where the query of media URIs goes; `suffix` follows that query in rendition
   * reports, which name playlists. The same array until it changes.
   */
  media(track: TrackModel, form: PlaylistForm, suffix: string): readonly string[] {
    const texts = this.#texts(track);
    const body = this.#body(texts, form);
    const ending = this.#model.concluded ? END : form.legacy ? NOTHING : this.#reports(texts);
    const key = formKey(form) + suffix;
    const kept = texts.wholes.get(key);
    if (kept !== undefined && kept.body === body && kept.ending === ending) return kept.pieces;
    const pieces = joined(body, ending, suffix);
    texts.wholes.set(key, { body, ending, pieces });
    return pieces;
  }

  #texts(track: TrackModel): TrackTexts {
    let texts = this.#tracks.get(track.id);
    if (texts?.track !== track) {
      const text = new MediaPlaylistText(this.#model, track, this.#settings);
      texts = { track, text, forms: new Map(), wholes: new Map(), reports: { version: -1, pieces: [] } };
      this.#tracks.set(track.id, texts);
    }
    return texts;
  }

  #body(texts: TrackTexts, form: PlaylistForm): readonly string[] {
    const key = formKey(form);
    const kept = texts.forms.get(key);
    if (kept?.version === texts.track.version) return kept.pieces;
    const pieces = texts.text.render(form).split(TAIL_MARK);
    texts.forms.set(key, { version: texts.track.version, pieces });
    return pieces;
  }

  /** Rendition reports: the positions of the other tracks. */
  #reports(texts: TrackTexts): readonly string[] {
    if (texts.reports.version === this.#model.version) return texts.reports.pieces;
    let text = '';
    for (const other of this.#model.tracks.values()) {
      const last = other.segments.findLast((segment) => !segment.gap && (segment.duration !== null || segment.parts.length > 0));
      if (other === texts.track || last === undefined) continue;
      const lastPart = last.path === null ? last.parts.length - 1 : null;
      text += serializeRenditionReport({ uri: this.#texts(other).text.uri, lastMsn: last.msn, lastPart });
    }
    texts.reports = { version: this.#model.version, pieces: text.split(TAIL_MARK) };
    return texts.reports.pieces;
  }
}

/** A piece ends with the name of a media playlist, after a line break or a quotation mark; the last piece has no name. */
function moved(piece: string, base: string): string {
  return piece.replace(/(?<=[\n"])[^\n"]*?(?=chunklist_[^/\n"]*$)/, base);
}

function formKey(form: PlaylistForm): number {
  return (form.legacy ? 1 : 0) | (form.rewind ? 2 : 0) | (form.skip ? 4 : 0);
}

/** `suffix` follows every cut of `ending`. */
function joined(body: readonly string[], ending: readonly string[], suffix: string): readonly string[] {
  const [first = '', ...rest] = ending;
  return [...body.slice(0, -1), (body.at(-1) ?? '') + first, ...rest.map((piece) => suffix + piece)];
}
