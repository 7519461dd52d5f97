/** The tracks of a stream: of the input, and of each output. */
import { formatBitrate } from './format.ts';
import { html, type View } from './html.ts';
import type { StreamInformation, TrackInformation } from './server-facts.ts';

/** One table. */
export function TrackTable({ information }: { readonly information: StreamInformation }): View {
  const groups = [
    { title: 'Input', tracks: information.input.tracks },
    ...information.outputs.map(({ name, tracks }) => ({ title: `Output ${name}`, tracks })),
  ];
  return html`<section>
    <div class="bar"><h2 id="tracks-title">Tracks</h2></div>
    <div class="scroll" tabindex="0" role="region" aria-labelledby="tracks-title">
      <table>
        <thead><tr><th scope="col">Track</th><th scope="col">Kind</th><th scope="col">Codec</th><th scope="col">Format</th>
          <th scope="col" class="number">Bitrate</th><th scope="col" class="number">Frames/s</th><th scope="col" class="number">GOP</th><th scope="col">Notes</th></tr></thead>
        ${groups.map(
          ({ title, tracks }) => html`<tbody key=${title}>
            <tr class="group"><th scope="rowgroup" colspan="8">${title}</th></tr>
            ${tracks.map((track) => html`<${Row} key=${track.id} track=${track} />`)}
          </tbody>`,
        )}
      </table>
    </div>
  </section>`;
}

function Row({ track }: { readonly track: TrackInformation }): View {
  const { video, audio } = track;
  const format = video === undefined ? audio && `${audio.samplerate / 1000} kHz, ${audio.channel} ch` : `${video.width}×${video.height}`;
  const media = video ?? audio;
  const notes = [media?.bypass === true ? 'bypassed' : '', video?.hasBframes === true ? 'B-frames' : ''].filter((note) => note !== '');
  return html`<tr>
    <th scope="row">${track.id} ${track.name}</th>
    <td data-label="Kind">${track.type}</td>
    <td data-label="Codec">${media?.codec ?? '–'}</td>
    <td data-label="Format">${format ?? '–'}</td>
    <td class="number" data-label="Bitrate">${media === undefined ? '–' : formatBitrate(Number(media.bitrateLatest))}</td>
    <td class="number" data-label="Frames/s">${video === undefined ? '–' : video.framerateLatest.toFixed(1)}</td>
    <td class="number" data-label="GOP">${video?.keyFrameIntervalLatest ?? '–'}</td>
    <td data-label="Notes">${notes.join(', ')}</td>
  </tr>`;
}
