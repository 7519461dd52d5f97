/** The container image, built and run step by step without a container engine. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Container, canContain, Image } from '../harness/image.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { probe } from '../harness/probe.ts';
import { publish } from '../harness/publisher.ts';
import { serverXml } from '../harness/server-xml.ts';

let image: Image;
beforeAll(() => {
  image = new Image();
}, 180_000);
afterAll(() => image?.remove());

test('the image contains the files to run the server, and no build tools', () => {
  const inside = path.join(image.root, 'opt/millrace');
  expect(readdirSync(inside).sort()).toEqual(['LICENSE', 'conf', 'dist', 'healthcheck.mjs', 'native', 'node_modules', 'package.json']);
  expect(readdirSync(path.join(inside, 'native'))).toEqual(['build']);
  expect(readdirSync(path.join(inside, 'native/build')).sort()).toEqual(['millrace-sandbox', 'millrace.node']);
  const packages = readdirSync(path.join(inside, 'node_modules'));
  expect(packages).toContain('node-av');
  const files = readdirSync(path.join(inside, 'node_modules'), { recursive: true, encoding: 'utf8' });
  expect(files).toContain('hls.js/dist/hls.min.mjs');
  expect(files.filter((file) => file.endsWith('.map') || /hls\.light/.test(file))).toEqual([]);
  expect(packages.filter((name) => ['typescript', 'vitest', 'playwright-core', 'node'].includes(name))).toEqual([]);
});

test('its program runs as a user without rights, and has a health check', () => {
  const { instructions, image: base } = image.final;
  expect(base).toMatch(/^node:24-.*-slim$/);
  expect(image.words('USER')).toEqual(['10001:10001']);
  expect(image.words('STOPSIGNAL')).toEqual(['SIGTERM']);
  expect(instructions.find(({ name }) => name === 'HEALTHCHECK')?.flags).toMatchObject({ interval: '10s' });
  expect(image.words('CMD')[0]).toBe('serve');
});

test('the compose file uses the options that the image is made for', () => {
  const compose = readFileSync(new URL('../../deploy/compose.yaml', import.meta.url), 'utf8');
  for (const line of [
    'read_only: true',
    '- no-new-privileges:true',
    'dockerfile: deploy/Dockerfile',
    '- state:/var/lib/millrace',
    '- /tmp',
  ]) {
    expect(compose).toContain(line);
  }
});

describe.skipIf(!canContain())('as the first process of a container, read-only, without capabilities', () => {
  test('it becomes healthy, serves a stream, and stops in time after SIGTERM', async () => {
    const [rtmp = 0, http = 0, api = 0, ice = 0, relay = 0] = await freePorts(5);
    const folder = mkdtempSync(path.join(tmpdir(), 'millrace-mount-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const config = path.join(folder, 'Server.xml');
    writeFileSync(config, serverXml({ rtmp, http, api, ice, relay }, { segmentDuration: 1 }));
    const args = ['serve', '--config', '/etc/millrace/Server.xml', '--state', '/var/lib/millrace', '--log-format', 'json'];
    const container = new Container(image, { args, mounts: { '/etc/millrace/Server.xml': config } });
    onTestFinished(() => container.kill());
    const env = { OME_API_PORT: `${api}` };
    await until('the health check passes', async () => {
      if (container.child.exit !== null) throw new Error(container.child.output);
      return (await container.health(env)) === 0;
    });
    const status = readFileSync(`/proc/${await container.pid()}/status`, 'utf8');
    expect(status).toMatch(/^NSpid:.*\t1$/m);
    expect(status).toMatch(/^Uid:\t10001\t10001/m);
    expect(status).toMatch(/^CapBnd:\t0+$/m);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    const encoder = publish({ url: `rtmp://127.0.0.1:${rtmp}/app/live`, width: 320, height: 180, videoKbps: 300 });
    onTestFinished(async () => {
      await encoder.stop();
    });
    await encoder.sent(90);
    expect((await probe(`http://127.0.0.1:${http}/app/live/llhls.m3u8`)).video).toMatchObject({ codec_name: 'h264', width: 320 });
    expect((await fetch(`http://127.0.0.1:${api}/console`)).status).toBe(200);
    // No write was refused, and the addon is in use.
    expect(container.child.output).not.toMatch(/EROFS|EACCES|read-only|"level":"(warn|error)"/);
    expect(await container.stop()).toEqual({ code: 0, signal: null });
    expect(container.child.output).toContain('"msg":"stopped"');
    expect(await container.health(env)).toBe(1);
  });
});
