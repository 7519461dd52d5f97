/** OBS Studio publishes over RTMP and SRT; skipped where it is not installed. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { findProgram, requireProgram } from '../../scripts/ensure-tools.ts';
import { Child } from '../harness/child.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const MISSING = ['obs', 'Xvfb'].filter((program) => findProgram(program) === null);
const WHY = MISSING.length === 0 ? '' : ` (skipped: ${MISSING.join(' and ')} not on PATH; apt-get install obs-studio xvfb)`;
const WAIT = { deadlineMs: 90_000, everyMs: 500 };
const [WIDTH, HEIGHT, FPS] = [320, 180, 30];

const PROFILE = `[General]
Name=Bench
[Output]
Mode=Simple
Reconnect=false
[SimpleOutput]
StreamEncoder=x264
VBitrate=400
ABitrate=96
Preset=ultrafast
UseAdvanced=true
x264Settings=keyint=${FPS} bframes=0 tune=zerolatency
[Video]
BaseCX=${WIDTH}
BaseCY=${HEIGHT}
OutputCX=${WIDTH}
OutputCY=${HEIGHT}
FPSType=0
FPSCommon=${FPS}
[Audio]
SampleRate=48000
ChannelSetup=Stereo
`;
/** Settings without questions at the first start. */
const GLOBAL = `[General]
FirstRun=true
EnableAutoUpdates=false
[Basic]
Profile=Bench
ProfileDir=Bench
SceneCollection=Bench
SceneCollectionFile=Bench
[OBSWebSocket]
ServerEnabled=false
`;
const SOURCE = { id: 'color_source_v3', name: 'Colour', settings: { color: 4_278_255_360, width: WIDTH, height: HEIGHT }, enabled: true };
const ITEM = { name: 'Colour', id: 1, visible: true, pos: { x: 0, y: 0 }, scale: { x: 1, y: 1 }, rot: 0, align: 5, bounds_type: 0 };
const SCENE = { id: 'scene', name: 'Scene', settings: { id_counter: 1, items: [ITEM] }, enabled: true };
const SCENES = {
  name: 'Bench',
  current_scene: 'Scene',
  current_program_scene: 'Scene',
  scene_order: [{ name: 'Scene' }],
  sources: [SOURCE, SCENE],
};

/** Starts a virtual screen; resolves with its `DISPLAY`. */
async function startScreen(): Promise<string> {
  const screen = new Child(requireProgram('Xvfb'), ['-displayfd', '1', '-screen', '0', '1024x768x24', '-nolisten', 'tcp']);
  onTestFinished(async () => void (await screen.kill()));
  const [, number] = await screen.printed(/^(\d+)$/m, WAIT.deadlineMs);
  return `:${number}`;
}

/** Starts OBS with its own home folder, streaming to `service`. */
async function stream(service: object): Promise<Child> {
  const home = mkdtempSync(path.join(tmpdir(), 'millrace-obs-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const settings = path.join(home, '.config/obs-studio');
  for (const folder of ['profiles/Bench', 'scenes']) mkdirSync(path.join(settings, 'basic', folder), { recursive: true });
  writeFileSync(path.join(settings, 'global.ini'), GLOBAL);
  writeFileSync(path.join(settings, 'basic/profiles/Bench/basic.ini'), PROFILE);
  writeFileSync(path.join(settings, 'basic/profiles/Bench/service.json'), JSON.stringify(service));
  writeFileSync(path.join(settings, 'basic/scenes/Bench.json'), JSON.stringify(SCENES));
  const display = await startScreen();
  const obs = new Child(requireProgram('obs'), ['--startstreaming', '--minimize-to-tray', '--disable-shutdown-check', '--multi'], {
    cwd: home,
    env: { PATH: process.env['PATH'], HOME: home, XDG_RUNTIME_DIR: home, DISPLAY: display, LIBGL_ALWAYS_SOFTWARE: '1', LANG: 'C.UTF-8' },
    name: 'obs',
  });
  onTestFinished(async () => void (await obs.kill()));
  return obs;
}

interface Information {
  readonly input: {
    readonly sourceType: string;
    readonly tracks: readonly {
      readonly video?: { readonly framerateAvg: number; readonly hasBframes: boolean };
      readonly audio?: object;
    }[];
  };
}

/** Checks the stream in the API and with ffprobe. */
async function expectStream(server: TestServer, obs: Child, name: string, sourceType: string): Promise<void> {
  const streams = '/v1/vhosts/default/apps/app/streams';
  const look = async (): Promise<Information> => await server.api.get<Information>(`${streams}/${name}`);
  try {
    await until('the stream of OBS', async () => (await server.api.get<string[]>(streams)).includes(name), WAIT);
  } catch (error) {
    throw new Error(obs.output.slice(-3000), { cause: error });
  }
  const { input } = await look();
  expect(input.sourceType).toBe(sourceType);
  expect(input.tracks.find(({ video }) => video)?.video).toMatchObject({ codec: 'H264', width: WIDTH, height: HEIGHT });
  expect(input.tracks.find(({ audio }) => audio)?.audio).toMatchObject({ codec: 'AAC', samplerate: 48_000, channel: 2 });
  const playlist = server.http(name, 'llhls.m3u8');
  await until('the playlist', async () => (await fetch(playlist)).status === 200, WAIT);
  const asked = ['-v', 'error', '-show_entries', 'stream=codec_name,width,height', '-of', 'csv=p=0', playlist];
  const { stdout } = spawnSync(requireProgram('ffprobe'), asked, { encoding: 'utf8' });
  expect(stdout).toContain(`h264,${WIDTH},${HEIGHT}`);
  expect(stdout).toMatch(/^aac/m);
  const video = async () => (await look()).input.tracks.find((track) => track.video)?.video;
  await until(`${FPS} frames a second`, async () => Math.abs(((await video())?.framerateAvg ?? 0) - FPS) < 2, WAIT);
  expect((await video())?.hasBframes).toBe(false);
}

test.skipIf(MISSING.length > 0)(`OBS publishes over RTMP${WHY}`, { timeout: 180_000 }, async () => {
  const server = await startServer();
  onTestFinished(() => server.close());
  const target = { server: server.rtmp('').replace(/\/$/, ''), key: 'obs', use_auth: false, bwtest: false };
  const obs = await stream({ type: 'rtmp_custom', settings: target });
  await expectStream(server, obs, 'obs', 'Rtmp');
});

test.skipIf(MISSING.length > 0)(`OBS publishes over SRT${WHY}`, { timeout: 180_000 }, async () => {
  const [ingest = 0, egress = 0] = await freePorts(2);
  const server = await startServer({ srt: { ingest, egress } });
  onTestFinished(() => server.close());
  const target = { server: `srt://127.0.0.1:${ingest}?streamid=default/app/obs&latency=400000`, key: '', use_auth: false, bwtest: false };
  const obs = await stream({ type: 'rtmp_custom', settings: target });
  await expectStream(server, obs, 'obs', 'SRT');
});
