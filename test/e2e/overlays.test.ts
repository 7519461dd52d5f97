/** An image over the video of a stream, visible in a player's decoded frames. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { apiPath } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const WIDTH = 320;
const HEIGHT = 180;

let server: TestServer;
let media: string;

beforeAll(async () => {
  media = mkdtempSync(path.join(tmpdir(), 'millrace-overlays-'));
  const ffmpeg = (...options: string[]) => execFileSync(requireProgram('ffmpeg'), ['-v', 'error', '-y', ...options], { cwd: media });
  const grey = `color=0x808080:size=${WIDTH}x${HEIGHT}:rate=25`;
  ffmpeg('-f', 'lavfi', '-i', grey, '-t', '3', '-c:v', 'libx264', '-preset', 'ultrafast', '-g', '25', '-threads', '1', 'grey.mp4');
  ffmpeg('-f', 'lavfi', '-i', 'color=red:size=16x16,format=rgba', '-frames:v', '1', 'logo.png');
  server = await startServer({ hostNames: ['127.0.0.1'] });
  await server.api.create('/v1/vhosts', [{ name: 'laid', host: { names: ['localhost'] } }]);
});

afterAll(async () => {
  await server?.close();
  rmSync(media, { recursive: true, force: true });
});

/** A frame of a rendition as a player decodes it; null while there is none. */
function frameOf(stream: string, file: string): ((x: number, y: number) => string) | null {
  const url = server.http(stream, `${file}.m3u8`, 'laid', 'localhost');
  const decode = ['-v', 'error', '-i', url, '-frames:v', '1', '-f', 'rawvideo', '-pix_fmt', 'rgb24', '-'];
  try {
    const frame = execFileSync(requireProgram('ffmpeg'), decode, { stdio: ['ignore', 'pipe', 'ignore'], timeout: 20_000 });
    if (frame.length !== WIDTH * HEIGHT * 3) return null;
    return (x, y) => {
      const [red = 0, green = 0, blue = 0] = frame.subarray((y * WIDTH + x) * 3);
      if (red > 200 && green < 60 && blue < 60) return 'red';
      return Math.max(red, green, blue) - Math.min(red, green, blue) < 20 && Math.abs(red - 128) < 24 ? 'grey' : `${red} ${green} ${blue}`;
    };
  } catch {
    return null;
  }
}

test('lies in the corner of the encode that the map names, in no other encode, and follows a changed map in new streams', async () => {
  const map = path.join(media, 'overlays.xml');
  const write = (left: string): void => {
    const place = `<Left>${left}</Left><Top>10</Top><Width>64</Width><Height>32</Height>`;
    const info = `<Enable>true</Enable><OutputStreamName>film*</OutputStreamName><VariantNames>log*</VariantNames>`;
    writeFileSync(map, `<OverlayMap><OverlayInfo>${info}<Overlay><Url>logo.png</Url>${place}</Overlay></OverlayInfo></OverlayMap>`);
  };
  write('MAIN_W-OVERLAY_W-10');
  const video = (name: string) => ({ name, codec: 'h264', bitrate: 1_000_000, height: HEIGHT, width: WIDTH });
  const playlist = (name: string) => ({ name, fileName: name, renditions: [{ name, video: name }] });
  const outputProfile = [
    {
      ...{ name: 'p', outputStreamName: '${OriginStreamName}', encodes: { videos: [video('logo'), video('plain')] } },
      playlists: [playlist('logo'), playlist('plain')],
    },
  ];
  await server.api.create(`${apiPath.vhost('laid')}/apps`, [
    {
      ...{ name: 'laid', type: 'live', providers: { file: { rootPath: media } }, publishers: { llhls: { segmentDuration: 1 } } },
      outputProfiles: { outputProfile, mediaOptions: { overlays: { enable: true, path: map } } },
    },
  ]);
  const play = async (name: string) => {
    const { status } = await server.api.call('POST', `${apiPath.app('laid', 'laid')}/streams`, {
      name,
      urls: ['file://grey.mp4'],
      properties: {},
    });
    expect(status).toBe(201);
    return await until(`a frame of ${name}`, () => frameOf(name, 'logo'), { deadlineMs: 45_000 });
  };
  const first = await play('film1');
  // The image is 64 × 32 pixels, 10 from the upper right.
  expect([first(248, 12), first(308, 40), first(240, 20), first(314, 20), first(280, 46), first(280, 5), first(20, 20)]).toEqual([
    ...['red', 'red'],
    ...['grey', 'grey', 'grey', 'grey', 'grey'],
  ]);
  const plain = await until('a frame without overlay', () => frameOf('film1', 'plain'), { deadlineMs: 45_000 });
  expect(plain(280, 20)).toBe('grey');
  write('10');
  const second = await play('film2');
  expect([second(40, 20), second(280, 20)]).toEqual(['red', 'grey']);
});
