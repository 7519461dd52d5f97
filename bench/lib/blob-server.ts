/** The process that `http-origin-micro` measures: delivery alone, with three files of known size. Prints its port. */

import type { DeliveryFeed } from '../../src/delivery/feed/messages.ts';
import { DeliveryPool } from '../../src/delivery/pool/delivery-pool.ts';
import { systemClock } from '../../src/util/clock.ts';
import { BLOB_VIEWS } from '../../test/fakes/blob-views.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { selfSigned } from '../../test/fakes/self-signed.ts';

const threads = Number(process.argv[2] ?? '1');
const sizes: Record<string, number> = { 'part.m4s': 160_000, 'segment.m4s': 2_000_000 };

function openBlobFeed(pool: DeliveryPool): DeliveryFeed {
  return pool.openFeed({
    kind: 'llhls',
    address: { vhost: 'default', app: 'app', stream: 'stream' },
    crossDomains: { urls: ['*'], headers: [] },
    settings: {},
    bytesPerSecond: 500_000,
    snapshot: () => [],
    openSession: null,
    onBytesSent: () => {},
  });
}

const pool = new DeliveryPool({
  threads,
  views: BLOB_VIEWS,
  workerEntry: new URL('../../test/fakes/blob-worker.ts', import.meta.url),
  clock: systemClock,
  logger: new RecordingLogger(),
});
await pool.start();
pool.setHosts([{ name: 'default', hostNames: ['*'] }]);
const feed = openBlobFeed(pool);
const line = '#EXT-X-PART:DURATION=0.500000,URI="part_0_11_0_video_j4QYcHK6_llhls.m4s?session=39_UEt7QoBb",INDEPENDENT=YES\n';
feed.update({ put: 'list.m3u8', text: [line.repeat(Math.ceil(5000 / line.length)).slice(0, 5000)] });
feed.store([Buffer.alloc(1000)]);
for (const [name, size] of Object.entries(sizes)) feed.update({ put: name, spans: feed.store([Buffer.alloc(size, 'v')]) });
const tls = process.argv[3] === 'tls';
if (tls) pool.setCertificates([{ hostNames: ['localhost'], ...selfSigned('localhost') }]);
const { port } = await pool.listen({ host: '127.0.0.1', port: 0, tls });
process.stdout.write(`${port}\n`);
process.on('SIGTERM', () => {
  void pool.stop().then(() => process.exit(0));
});
