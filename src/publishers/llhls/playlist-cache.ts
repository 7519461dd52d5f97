/** Playlist texts by track and form, rendered once per change and split where a client's query goes. */
import { serializeRenditionReport } from '../../playlist/rendition-report.ts';
import { MediaPlaylistText, type PlaylistForm } from './media-playlist-text.ts';
import type { LlhlsViewSettings } from './settings.ts';
import type { StreamModel, TrackModel } from './stream-model.ts';
import { TAIL_MARK } from './update.ts';

const END = '#EXT-X-ENDLIST\n';

interface Template {
  version: number;
  pieces: readonly string[];
}

interface TrackTexts {
  readonly track: TrackModel;
  readonly text: MediaPlaylistText;
  readonly forms: Map<number, Template>;
  reports: Template;
}

export class PlaylistCache {
  readonly #model: StreamModel;
  readonly #settings: LlhlsViewSettings;
  readonly #tracks = new Map<number, TrackTexts>();
  readonly #multivariants = new Map<string, { text: string; pieces: readonly string[] }>();

  constructor(model: StreamModel, settings: LlhlsViewSettings) {
    this.#model = model;
    this.#settings = settings;
  }

  /** The multivariant playlist `fileName` with `tail` behind its URIs; null when there is none of that name. */
  multivariant(fileName: string, tail: string): string | null {
    const current = this.#model.multivariants.get(fileName);
    if (current === undefined) return null;
    let kept = this.#multivariants.get(fileName);
    if (kept?.text !== current.text) {
      kept = { text: current.text, pieces: current.text.split(TAIL_MARK) };
      this.#multivariants.set(fileName, kept);
    }
    return kept.pieces.join(tail);
  }

  /** The media playlist of `track`. Rendition reports carry `playlistTail`, everything else `mediaTail`. */
  media(track: TrackModel, form: PlaylistForm, mediaTail: string, playlistTail: string): string {
    const texts = this.#texts(track);
    const body = this.#body(texts, form).join(mediaTail);
    if (this.#model.concluded) return body + END;
    return form.legacy ? body : body + this.#reports(texts).join(playlistTail);
  }

  #texts(track: TrackModel): TrackTexts {
    let texts = this.#tracks.get(track.id);
    if (texts?.track !== track) {
      const text = new MediaPlaylistText(this.#model, track, this.#settings);
      texts = { track, text, forms: new Map(), reports: { version: -1, pieces: [] } };
      this.#tracks.set(track.id, texts);
    }
    return texts;
  }

  #body(texts: TrackTexts, form: PlaylistForm): readonly string[] {
    const key = (form.legacy ? 1 : 0) | (form.rewind ? 2 : 0) | (form.skip ? 4 : 0);
    const kept = texts.forms.get(key);
    if (kept?.version === texts.track.version) return kept.pieces;
    const pieces = texts.text.render(form).split(TAIL_MARK);
    texts.forms.set(key, { version: texts.track.version, pieces });
    return pieces;
  }

  /** How far the other tracks are. */
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
