import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { parseXml } from '../config/xml.ts';
import { AllowedFolders } from '../util/allowed-folders.ts';
import { readOverlays } from './overlay-files.ts';
import { overlaysFor, parseOverlayMap } from './overlay-map.ts';

const parsed = (xml: string, file: string) => parseOverlayMap(parseXml(xml, file));

const STREAM = { name: 'cam_high', sourceName: 'cam' };
const NAME = '<Enable>true</Enable><OutputStreamName>cam*</OutputStreamName>';
const LOGO = '<Url>logo.png</Url>';

function map(...entries: readonly string[]): string {
  return `<OverlayMap>\n${entries.map((entry) => `<OverlayInfo>${entry}</OverlayInfo>`).join('\n')}\n</OverlayMap>`;
}

describe('an overlay map', () => {
  it('lists the images with their places', () => {
    const place = '<Left>MAIN_W-OVERLAY_W</Left><Top>10</Top><Width>64</Width><Height>MAIN_H / 4</Height><Opacity>50</Opacity>';
    const entries = parsed(
      map(`${NAME}<VariantNames>*_1080p, low</VariantNames><Overlay>${LOGO}${place}</Overlay><Overlay>${LOGO}</Overlay>`),
      'm',
    );
    expect(entries).toEqual([
      {
        streamName: 'cam*',
        variantNames: ['*_1080p', 'low'],
        overlays: [
          { url: 'logo.png', left: 'MAIN_W-OVERLAY_W', top: '10', width: '64', height: 'MAIN_H / 4', opacity: 0.5 },
          { url: 'logo.png', left: '0', top: '0', width: '100', height: '100', opacity: 1 },
        ],
      },
    ]);
  });

  it.each([
    [STREAM, 'a_1080p', 2],
    [STREAM, 'low', 2],
    [STREAM, 'high', 1],
    [{ ...STREAM, name: 'other' }, 'low', 0],
  ])('%j with the encode %s gets %i images', (stream, variantName, count) => {
    const entries = parsed(
      map(
        `${NAME}<VariantNames>*_1080p,low</VariantNames><Overlay>${LOGO}</Overlay>`,
        `${NAME}<Overlay>${LOGO}</Overlay>`,
        `<Enable>false</Enable><OutputStreamName>*</OutputStreamName><Overlay>${LOGO}</Overlay>`,
      ),
      'm',
    );
    expect(overlaysFor(entries, stream, variantName).length).toBe(count);
  });

  it('gives an encode the first sixteen of all entries together', () => {
    const nine = `${NAME}${`<Overlay>${LOGO}</Overlay>`.repeat(9)}`;
    expect(overlaysFor(parsed(map(nine, nine), 'm'), STREAM, 'high').length).toBe(16);
  });

  it.each([
    [map('<Enable>true</Enable>'), 'm:2: OverlayInfo/OutputStreamName is missing'],
    [map(`${NAME}<Overlay></Overlay>`), 'm:2: OverlayInfo/Overlay/Url is missing'],
    [map(`${NAME}<Overlay>${LOGO}<Opacity>101</Opacity></Overlay>`), 'Opacity must be a number from 0 to 100, but is "101"'],
    [map(`${NAME}<Overlay>${LOGO}<Left>WIDTH</Left></Overlay>`), 'OverlayInfo/Overlay/Left has "WIDTH", but knows MAIN_W'],
    [map(`${NAME}${`<Overlay>${LOGO}</Overlay>`.repeat(17)}`), 'is there 17 times, at most 16'],
    ['<RecordInfo/>', 'the root element must be OverlayMap'],
    ['<OverlayMap>', 'not well-formed'],
  ])('%s is refused', (xml, message) => {
    expect(() => parsed(xml, 'm')).toThrow(message);
  });
});

describe('the images of a map', () => {
  const PNG = Buffer.from('89504e470d0a1a0a', 'hex');
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'millrace-overlay-map-'));
    mkdirSync(join(folder, 'maps'));
    mkdirSync(join(folder, 'secret'));
    for (const place of ['maps/a b.png', 'maps/logo.png', 'secret/logo.png']) writeFileSync(join(folder, place), PNG);
    writeFileSync(join(folder, 'maps/text.png'), 'no picture');
    writeFileSync(join(folder, 'maps/large.png'), Buffer.concat([PNG, Buffer.alloc(8 * 1024 * 1024)]));
    symlinkSync(join(folder, 'secret/logo.png'), join(folder, 'maps/link.png'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  async function read(url: string, allowed: readonly string[] | null = null) {
    const path = join(folder, 'maps/overlays.xml');
    writeFileSync(path, map(`${NAME}<Overlay><Url>${url}</Url></Overlay><Overlay>${LOGO}</Overlay>`));
    const logger = new RecordingLogger();
    const rules = await readOverlays(path, new AllowedFolders(allowed, 'Server/Storage/AllowedRoots'), logger);
    return { images: rules.flatMap(({ overlays }) => overlays), lines: logger.lines.map(({ message }) => message) };
  }

  it.each(['a%20b.png', 'a b.png', '../secret/logo.png', './logo.png'])('%s counts from the folder of the map', async (url) => {
    const { images, lines } = await read(url === 'a%20b.png' ? `file://${folder}/maps/a%20b.png` : url);
    expect(lines).toEqual([]);
    expect(images.map(({ image }) => Buffer.from(image))).toEqual([PNG, PNG]);
    expect(images[0]?.imageId).toBe(images[1]?.imageId);
  });

  it.each([
    ['nothing.png', 'ENOENT'],
    ['text.png', 'neither PNG nor JPEG'],
    ['large.png', 'at most 8388608 are taken'],
    ['.', 'is not a file'],
    ['http://192.0.2.1/logo.png', 'only files are taken'],
    ['file://host/logo.png', 'is no path'],
  ])('%s is left out with a log line, and the others stay', async (url, reason) => {
    const { images, lines } = await read(url);
    expect(images.length).toBe(1);
    expect(lines).toEqual([expect.stringMatching(/^the overlay '.*' cannot be used: .*; it is left out$/)]);
    expect(lines[0]).toContain(reason);
  });

  it('a pipe is not a file, and its output is not waited for', async () => {
    execFileSync('mkfifo', [join(folder, 'maps/pipe.png'), join(folder, 'maps/pipe.xml')]);
    const { images, lines } = await read('pipe.png');
    expect([images.length, lines]).toEqual([1, [expect.stringContaining('is not a file')]]);
    const logger = new RecordingLogger();
    expect(await readOverlays(join(folder, 'maps/pipe.xml'), new AllowedFolders(null, ''), logger)).toEqual([]);
    expect(logger.lines.map(({ message }) => message)).toEqual([expect.stringContaining('is not a file')]);
  });

  it('have 16 MiB in all, each counted once', async () => {
    const large = Buffer.concat([PNG, Buffer.alloc(7 * 1024 * 1024)]);
    for (const name of ['one.png', 'two.png', 'three.png']) writeFileSync(join(folder, 'maps', name), large);
    const path = join(folder, 'maps/heavy.xml');
    const overlays = ['one.png', 'one.png', 'two.png', 'three.png', 'logo.png'].map((name) => `<Overlay><Url>${name}</Url></Overlay>`);
    writeFileSync(path, map(`${NAME}${overlays.join('')}`));
    const logger = new RecordingLogger();
    const [rule] = await readOverlays(path, new AllowedFolders(null, ''), logger);
    expect(rule?.overlays.map(({ url }) => url)).toEqual(['one.png', 'one.png', 'two.png', 'logo.png']);
    expect(logger.lines.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^the overlay 'three.png' .* are taken; it is left out$/),
    ]);
  });

  it('must lie in the allowed folders', async () => {
    const allowed = [join(folder, 'maps')];
    for (const url of ['../secret/logo.png', 'link.png', 'file:///etc/passwd']) {
      const { images, lines } = await read(url, allowed);
      expect([images.length, lines.length], url).toEqual([1, 1]);
      expect(lines[0]).toContain('AllowedRoots');
    }
    const { images, lines } = await read('logo.png', [join(folder, 'secret')]);
    expect(images).toEqual([]);
    expect(lines[0]).toMatch(/^overlay map cannot be used: .*AllowedRoots.*; the stream has no overlays$/);
  });

  it('are none when the map cannot be read', async () => {
    const logger = new RecordingLogger();
    const anywhere = new AllowedFolders(null, '');
    expect(await readOverlays(join(folder, 'none.xml'), anywhere, logger)).toEqual([]);
    writeFileSync(join(folder, 'broken.xml'), map(`${NAME}<Overlay></Overlay>`));
    expect(await readOverlays(join(folder, 'broken.xml'), anywhere, logger)).toEqual([]);
    expect(logger.lines.map(({ message }) => message)).toEqual([
      expect.stringContaining('ENOENT'),
      expect.stringContaining('broken.xml:2: OverlayInfo/Overlay/Url is missing'),
    ]);
  });
});
