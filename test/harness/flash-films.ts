/** Films and a camera with simultaneous flashes and beeps; the lower half of the frame identifies the film. */
import { execFileSync } from 'node:child_process';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { Child } from './child.ts';

/** Colours that a page can distinguish reliably. */
export type FilmColour = 'red' | 'green' | 'blue' | 'yellow';

/** A film. */
export interface FlashFilm {
  readonly colour: FilmColour;
  /** `<width>x<height>`. */
  readonly size: string;
  readonly fps: number;
  readonly sampleRate: number;
  /** Options of ffmpeg. */
  readonly encode: readonly string[];
}

const COLOURS: Readonly<Record<FilmColour, string>> = { red: 'red', green: '0x008000', blue: 'blue', yellow: 'yellow' };
/** Every second, 0.6 s after its beginning: a time at which both 25 and 30 frames per second have a frame. */
const BEEP = 'lt(mod(t+0.4,1),0.2)';
/** Times of frames are rounded. */
const FLASH = 'lt(mod(t+0.405,1),0.2)';

/** Writes a film of `seconds`. Throws with the output of ffmpeg. */
export function makeFlashFilm(file: string, seconds: number, film: FlashFilm): void {
  const limits = ['-t', `${seconds}`, '-pix_fmt', 'yuv420p', '-threads', '1'];
  execFileSync(requireProgram('ffmpeg'), ['-v', 'error', ...inputs(film), ...limits, ...film.encode, file]);
}

/** Publishes a film in a loop to an RTMP URL, until it is stopped. */
export function publishFlashFilm(url: string, film: FlashFilm): Child {
  const output = ['-pix_fmt', 'yuv420p', ...film.encode, '-f', 'flv', url];
  return new Child(requireProgram('ffmpeg'), ['-v', 'error', '-nostdin', '-re', ...inputs(film), ...output]);
}

function inputs({ colour, size, fps, sampleRate }: FlashFilm): string[] {
  const half = 'drawbox=y=0:h=ih/2:t=fill';
  const video = `color=${COLOURS[colour]}:size=${size}:rate=${fps},${half}:color=black,${half}:color=white:enable='${FLASH}'`;
  const audio = `aevalsrc='0.8*sin(2*PI*1000*t)*${BEEP}':sample_rate=${sampleRate}`;
  return ['-f', 'lavfi', '-i', video, '-f', 'lavfi', '-i', audio];
}
