/** Images over encoded frames, seen by their pixels. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TranscodeLab, type TranscodeRun, videoConfig } from '../../test/fakes/transcode-run.ts';
import { until } from '../../test/harness/poll.ts';
import { type EncodedMedia, encodeMedia } from '../../test/support/encoded-media.ts';
import type { EncodeRequest, OverlayRequest } from '../core/transcoding.ts';

const WIDTH = 320;
const HEIGHT = 180;
const SECONDS = 1;
const FRAMES = 30;

let media: EncodedMedia;
let folder: string;
let lab: TranscodeLab;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-overlays-'));
  const grey = ['-vf', 'drawbox=color=0x808080:t=fill', '-preset', 'ultrafast', '-bf', '0'];
  media = encodeMedia({ video: 'libx264', audio: null, seconds: SECONDS, extra: grey });
  lab = new TranscodeLab();
});
afterAll(async () => {
  await lab.close();
  rmSync(folder, { recursive: true, force: true });
});

function painted(colour: string, size: string, format: 'png' | 'jpg'): Buffer {
  const file = join(folder, `image.${format}`);
  const pixels = format === 'png' ? ['-pix_fmt', 'rgba'] : ['-q:v', '1'];
  execFileSync('ffmpeg', [
    '-v',
    'error',
    '-y',
    '-f',
    'lavfi',
    '-i',
    `color=${colour}:size=${size},format=rgba`,
    '-frames:v',
    '1',
    ...pixels,
    file,
  ]);
  return execFileSync('cat', [file]);
}

function overlay(image: Buffer, place: Partial<OverlayRequest> = {}): OverlayRequest {
  const imageId = createHash('sha256').update(image).digest('hex');
  return { url: 'logo', image, imageId, left: '0', top: '0', width: '40', height: '40', opacity: 1, ...place };
}

const video = (id: number, overlays: readonly OverlayRequest[], height = HEIGHT): EncodeRequest => ({
  ...{ id, sourceId: 0, type: 'video', overlays },
  encode: videoConfig({ bitrate: 2_000_000, height }),
});

async function encoded(encodes: readonly EncodeRequest[]): Promise<TranscodeRun> {
  const run = lab.open(encodes, [media.video!]);
  await run.feed(media.packets);
  for (const { id } of encodes) await run.makes(id, FRAMES - 1);
  return run;
}

/** Colours of the last frame of an encode. */
function colours(run: TranscodeRun, id: number, [width, height] = [WIDTH, HEIGHT]) {
  const file = join(folder, 'made.mp4');
  writeFileSync(file, run.file(id));
  const decode = ['-v', 'error', '-i', file, '-f', 'rawvideo', '-pix_fmt', 'rgb24', '-'];
  const frames = execFileSync('ffmpeg', decode, { maxBuffer: 1 << 28 });
  const last = frames.subarray(frames.length - width! * height! * 3);
  return (x: number, y: number): number[] => [...last.subarray((y * width! + x) * 3, (y * width! + x) * 3 + 3)];
}

function expectColour(found: readonly number[], wanted: readonly number[]): void {
  for (const [index, value] of wanted.entries())
    expect(Math.abs(value - (found[index] ?? -1)), `${found} is not ${wanted}`).toBeLessThan(16);
}

const GREY = [128, 128, 128];
const RED = [255, 0, 0];

it('an image is drawn at its place, in its size and colours, and nowhere else', async () => {
  const run = await encoded([
    video(1, [overlay(painted('red', '10x10', 'png'), { left: 'MAIN_W-OVERLAY_W-20', top: '(MAIN_H-40)/2', width: '60' })]),
  ]);
  const at = colours(run, 1);
  // 60 × 40 pixels, 20 from the right, in the middle of the height.
  for (const [x, y] of [
    [242, 72],
    [297, 72],
    [242, 107],
    [297, 107],
    [270, 90],
  ] as const)
    expectColour(at(x, y), RED);
  for (const [x, y] of [
    [236, 90],
    [303, 90],
    [270, 66],
    [270, 113],
    [5, 5],
  ] as const)
    expectColour(at(x, y), GREY);
  run.session.close();
});

it('images are drawn in order, with their opacity and alpha', async () => {
  const run = await encoded([
    video(1, [
      overlay(painted('red', '10x10', 'png')),
      overlay(painted('blue', '64x64', 'jpg'), { left: '20', top: '20' }),
      overlay(painted('white', '10x10', 'png'), { left: '100', opacity: 0.5 }),
      overlay(painted('black@0.5', '10x10', 'png'), { left: '200' }),
      overlay(painted('green', '10x10', 'png'), { left: '250', opacity: 0 }),
    ]),
  ]);
  const at = colours(run, 1);
  expectColour(at(8, 8), RED);
  expectColour(at(30, 30), [0, 0, 255]);
  expectColour(at(120, 20), [192, 192, 192]);
  expectColour(at(220, 20), [64, 64, 64]);
  expectColour(at(270, 20), GREY);
  run.session.close();
});

it('each encode has its own images, scaled to its frames', async () => {
  const logo = painted('red', '10x10', 'png');
  const place = { left: 'MAIN_W/2', top: 'MAIN_H/2', width: 'MAIN_W/4', height: 'MAIN_H/4' };
  const run = await encoded([video(1, [overlay(logo, place)]), video(2, []), video(3, [overlay(logo, place)], 90)]);
  expectColour(colours(run, 1)(200, 110), RED);
  expectColour(colours(run, 2)(200, 110), GREY);
  expectColour(colours(run, 3, [160, 90])(100, 55), RED);
  expectColour(colours(run, 3, [160, 90])(70, 55), GREY);
  run.session.close();
});

it('an overlay that cannot be decoded, or has no pixels, is left out with a log line; the other overlays and the stream continue', async () => {
  const logo = painted('red', '10x10', 'png');
  const from = lab.logger.lines.length;
  const run = await encoded([
    video(1, [
      overlay(logo.subarray(0, 20), { url: 'broken.png' }),
      overlay(logo, { url: 'flat.png', height: 'MAIN_H-180' }),
      overlay(logo),
    ]),
  ]);
  expectColour(colours(run, 1)(20, 20), RED);
  const told = lab.logger.lines.slice(from).filter(({ level }) => level === 'warn');
  expect(told).toMatchObject([
    { message: expect.stringContaining("the overlay 'broken.png' is left out") },
    { message: "the overlay 'flat.png' is left out: Height comes to 0 pixels" },
  ]);
  run.session.close();
});

it('an overlay with too many pixels, in the file or over the frame, is left out with a log line; the other overlays continue', async () => {
  const logo = painted('red', '10x10', 'png');
  const large = painted('blue', '6000x6000', 'png');
  const from = lab.logger.lines.length;
  const run = await encoded([
    video(1, [
      overlay(large, { url: 'file.png' }),
      overlay(logo, { url: 'wide.png', width: '16384', height: '16384' }),
      // Each of them would fit.
      overlay(logo, { width: '5000', height: '5000', opacity: 0 }),
      overlay(logo, { url: 'second.png', width: '5000', height: '5000' }),
      overlay(logo),
    ]),
  ]);
  expectColour(colours(run, 1)(20, 20), RED);
  expectColour(colours(run, 1)(200, 110), GREY);
  expect(lab.logger.lines.slice(from).filter(({ level }) => level === 'warn')).toMatchObject([
    { message: "the overlay 'file.png' is left out: the image cannot be decoded" },
    { message: "the overlay 'wide.png' is left out: 16384x16384 pixels are more than there is room for (33554432)" },
    { message: "the overlay 'second.png' is left out: 5000x5000 pixels are more than there is room for (8554432)" },
  ]);
  run.session.close();
});

it('the images are drawn again after the process has died', async () => {
  const run = await encoded([video(1, [overlay(painted('red', '10x10', 'png'))])]);
  const before = run.made(1).packets.length;
  const pids = [...lab.supervisor.pids];
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  await until('another process runs', () => lab.supervisor.pids.some((pid) => !pids.includes(pid)));
  const later = 900_000;
  await run.feed(media.packets.map((packet) => ({ ...packet, pts: packet.pts + later, dts: packet.dts + later })));
  await run.makes(1, before + FRAMES - 1);
  expectColour(colours(run, 1)(20, 20), RED);
  run.session.close();
});
