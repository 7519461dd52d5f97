import { expect, test } from 'vitest';
import { problemsOf, strayed } from '../../scripts/check-rooms.ts';

const WIRE = 'wire/stun/stun-message.ts';

test.each([
  ['a room below its own', 'media/packet.ts', "import { x } from '../core/ingest.ts';"],
  ['the server', 'services/rtmp/rtmp-session.ts', "import type { X } from '../../server.ts';"],
  ['another service', 'services/rtmp/rtmp-session.ts', "export * from '../srt/srt-service.ts';"],
  ['another service, for what it does', 'services/rtmp/rtmp-session.ts', "import '../srt/srt-service.ts';"],
  ['another service, at run time', 'services/rtmp/rtmp-session.ts', "const x = await import('../srt/srt-service.ts');"],
  ['media from the configuration', 'config/banner.ts', "import type { Packet } from '../media/packet.ts';"],
  ['the packager from the view', 'services/hls/view/fmp4/llhls-view.ts', "import { x } from '../../packager/segment-window.ts';"],
  ['a package from the client', 'client/index.ts', "import ws from 'ws';"],
  ['a file outside of the rooms', 'loose.ts', ''],
  ['sockets', WIRE, "import net from 'node:net';"],
  ['all of sockets', WIRE, "import * as net from 'node:net';"],
  ['sockets beside addresses', WIRE, "import { createServer, isIP } from 'node:net';"],
  ['sockets behind addresses', WIRE, "import { isIP, createServer } from 'node:net';"],
  ['sockets at run time', WIRE, "const dgram = await import('node:dgram');"],
  ['a package that has sockets', WIRE, "import { WebSocket } from 'ws';"],
  ['the log', WIRE, "import type { Logger } from '../../util/logger.ts';"],
  ['the clock', WIRE, "import { systemClock } from '../../util/clock.ts';"],
  ['the log behind another file', WIRE, "import { GatedLines } from '../../util/gated-lines.ts';"],
  ['the time', WIRE, 'const now = performance.now();'],
  ['the time, without asking for it yet', WIRE, 'const clock = { now: Date.now };'],
  ['the time, by a name of its own', WIRE, 'const { now } = performance;'],
  ['the time, by the process', WIRE, 'const { hrtime } = process;'],
  ['the date', WIRE, 'const now = new Date();'],
  ['the date without brackets', WIRE, 'const now = new Date;'],
  ['the date as a text', WIRE, 'const now = Date();'],
  ['the date under another name', WIRE, 'const Day = Date;'],
  ['a timer', WIRE, 'setTimeout(() => {}, 1);'],
  ['a timer to be called later', WIRE, 'const later = setTimeout;'],
  ['a timer with types', WIRE, 'setTimeout<[number]>(f, 1, 2);'],
  ['a timer of signals', WIRE, 'const signal = AbortSignal.timeout(1);'],
  ['a turn of its own', WIRE, 'queueMicrotask(() => {});'],
  ['a timer in a text', WIRE, 'const x = `${setTimeout(f)}`;'],
  ['a timer of everything', WIRE, "globalThis['setTimeout'](f);"],
  ['requests', WIRE, "fetch('http://a');"],
  ['sockets that need no import', WIRE, "new WebSocket('ws://a');"],
  ['sockets, in the old way', WIRE, "import net = require('node:net');"],
  ['sockets, by a text with marks of its own', WIRE, 'const net = await import(`node:net`);'],
  ['sockets between harmless packages', WIRE, "const all = [import('node:net'), import('node:crypto')];"],
  ['sockets with an attribute', WIRE, "import net from 'node:net' with { type: 'json' };"],
  ['another service, by a text with marks of its own', 'services/rtmp/rtmp-session.ts', 'await import(`../srt/srt-service.ts`);'],
  ['a file that is named at run time', 'services/rtmp/rtmp-session.ts', 'await import(`../${name}/service.ts`);'],
  ['a file by a variable', 'core/ingest.ts', 'await import(name);'],
  ['a file beside the services', 'services/shared.ts', ''],
  ['a folder of HLS that no rule names', 'services/hls/cache/ring.ts', ''],
])('%s may not be imported or used', (_, file, text) => {
  expect(problemsOf(file, text)).toHaveLength(1);
});

test.each([
  ['a room above its own', 'core/ingest.ts', "import { x } from '../media/packet.ts';"],
  ['the room of HLS that both sides know', 'services/hls/view/fmp4/llhls-view.ts', "import { x } from '../../wire/settings.ts';"],
  ['what addresses are', WIRE, "import { isIP, isIPv6 } from 'node:net';"],
  ['the file that all services have', 'services/service.ts', "import type { X } from '../core/ingest.ts';"],
  ['the service of HLS', 'services/hls/hls-service.ts', "import { x } from './packager/segment-window.ts';"],
  ['dates of a peer', WIRE, 'const sent: Date = new Date(reader.f64());\nif (value instanceof Date) f(value);'],
  ['comments and texts', WIRE, "// setTimeout(f)\nconst x = 'process';\nconst y = () => session.process();"],
  ['hashes and bytes', WIRE, "import { createHmac } from 'node:crypto';\nconst KEY = Buffer.from('00');"],
])('%s may', (_, file, text) => {
  expect(problemsOf(file, text)).toEqual([]);
});

/** Returns the text of a file; all other files are empty. */
function only(texts: Readonly<Record<string, string>>): (file: string) => string {
  return (file) => texts[file] ?? '';
}

test('modules of a delivery thread load no module of the main thread, even indirectly', () => {
  const near = "import { x } from './delivery/thread/delivery.ts';";
  expect(
    strayed(
      only({
        'delivery-worker.ts': near,
        'delivery/thread/delivery.ts': "import {\n  X,\n  type Y,\n} from '../../core/orchestrator.ts';",
      }),
    ),
  ).toEqual(["delivery/thread/delivery.ts: 'delivery-worker.ts' may not load 'core/orchestrator.ts'"]);
  expect(strayed(only({ 'delivery-worker.ts': near, 'delivery/thread/delivery.ts': "import { X } from '../../core/drain.ts';" }))).toEqual(
    [],
  );
});

test('types of other rooms are not loaded', () => {
  const types = "import type { X } from './core/orchestrator.ts';\nexport type { Y } from './core/ingest.ts';\n";
  expect(strayed(only({ 'delivery-worker.ts': types }))).toEqual([]);
});

test('the main thread loads no codec', () => {
  const feed = "import { VIDEO_WINDOW } from './process/pipeline.ts';";
  expect(strayed(only({ 'server.ts': "import { x } from './transcoder/source-feed.ts';", 'transcoder/source-feed.ts': feed }))).toEqual([
    "transcoder/source-feed.ts: the main thread may not load 'transcoder/process/pipeline.ts'",
  ]);
});

test('the main thread loads no view', () => {
  expect(strayed(only({ 'server.ts': "import { VIEWS } from './services/hls/view/ts/hls-view.ts';" }))).toEqual([
    "server.ts: the main thread may not load 'services/hls/view/ts/hls-view.ts'",
  ]);
  expect(strayed(only({ 'server.ts': "import { HttpListener } from './delivery/http/http-listener.ts';" }))).toEqual([
    "server.ts: the main thread may not load 'delivery/http/http-listener.ts'",
  ]);
  expect(strayed(only({ 'server.ts': "const { VIEWS } = await import('./delivery-views.ts');" }))).toEqual([]);
});

test('a transcoder process loads no module of the server', () => {
  expect(
    strayed(
      only({
        'transcoder/process/child.ts': "export { x } from './child-life.ts';",
        'transcoder/process/child-life.ts': "import '../../config/index.ts';",
      }),
    ),
  ).toEqual(["transcoder/process/child-life.ts: 'transcoder/process/child.ts' may not load 'config/index.ts'"]);
});
