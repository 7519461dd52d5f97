/** The quality of a ladder's frames, by ffmpeg's SSIM filter against the scaled source, compared with ffmpeg at the same settings. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { TranscodeLab } from '../../test/fakes/transcode-run.ts';
import { ffmpegArguments, ffmpegProgram } from './ffmpeg-ladder.ts';
import { encodesOf, type Ladder, type Media, type Rung } from './ladder.ts';
import { SOURCE_FPS } from './source.ts';

/** A rung encoded by us and by ffmpeg. */
export interface Likeness {
  readonly rung: Rung;
  /** SSIM of all planes: 1 is the source itself. */
  readonly ours: number;
  readonly theirs: number;
  /** Our bytes relative to ffmpeg's. */
  readonly bytes: number;
}

/** Encodes `seconds` of `media`, the content of `source`, with the transcoder and with ffmpeg. Throws if either drops or adds frames. */
export async function compareQuality(ladder: Ladder, source: string, media: Media, seconds: number): Promise<Likeness[]> {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-quality-'));
  const theirFile = ({ height }: Rung): string => path.join(folder, `theirs-${height}.ts`);
  const lab = new TranscodeLab();
  try {
    const rungsOnly: Ladder = { rungs: ladder.rungs, audios: [] };
    const frames = seconds * SOURCE_FPS;
    const run = lab.open(encodesOf(rungsOnly), [media.video]);
    await run.feed(media.packets.filter(({ track }) => track === media.video).slice(0, frames));
    for (const { id } of ladder.rungs) await run.makes(id, frames);
    ffmpeg(ffmpegProgram(), ffmpegArguments(rungsOnly, source, seconds, theirFile));
    return ladder.rungs.map((rung) => {
      const ourFile = path.join(folder, `ours-${rung.height}.mp4`);
      writeFileSync(ourFile, run.file(rung.id));
      const [ours, theirs] = [ourFile, theirFile(rung)].map((file) => similarity(file, source, rung, frames));
      return { rung, ours: ours ?? 0, theirs: theirs ?? 0, bytes: videoBytes(ourFile, folder) / videoBytes(theirFile(rung), folder) };
    });
  } finally {
    await lab.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function ffmpeg(program: string, args: readonly string[]): string {
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 1 << 26 });
  if (status !== 0) throw new Error(`ffmpeg ended with ${status}: ${stderr}`);
  return stderr;
}

/** Compares frame by frame, regardless of times: all frames must be present. */
function similarity(file: string, source: string, { width, height }: Rung, frames: number): number {
  const count = 'settb=1/1000,setpts=N';
  const graph = `[0:v]${count}[made];[1:v]trim=end_frame=${frames},scale=${width}:${height}:flags=bicubic,${count}[source];[made][source]ssim`;
  const said = ffmpeg(requireProgram('ffmpeg'), ['-hide_banner', '-nostdin', '-i', file, '-i', source, '-lavfi', graph, '-f', 'null', '-']);
  const compared = Number([...said.matchAll(/frame= *(\d+)/g)].at(-1)?.[1]);
  const all = Number(/SSIM .*All:([\d.]+)/.exec(said)?.[1]);
  if (compared !== frames || !(all > 0)) throw new Error(`${file} has ${compared} frames, not ${frames}: ${said}`);
  return all;
}

/** Size of the video without its container. */
function videoBytes(file: string, folder: string): number {
  const bare = path.join(folder, 'video.h264');
  ffmpeg(requireProgram('ffmpeg'), ['-v', 'error', '-nostdin', '-y', '-i', file, '-map', '0:v', '-c', 'copy', '-f', 'h264', bare]);
  return statSync(bare).size;
}
