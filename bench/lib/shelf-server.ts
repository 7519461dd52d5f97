/** The process that `http-origin-micro` measures: delivery alone, with three files of known size. Prints its port. */

import type { Outlet } from '../../src/delivery/outlet/messages.ts';
import { DeliveryPool } from '../../src/delivery/pool/delivery-pool.ts';
import { systemClock } from '../../src/util/clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { selfSigned } from '../../test/fakes/self-signed.ts';
import { SHELF_VIEWS } from '../../test/fakes/shelf-views.ts';

const threads = Number(process.argv[2] ?? '1');
const sizes: Record<string, number> = { 'part.m4s': 160_000, 'segment.m4s': 2_000_000 };

function openShelf(pool: DeliveryPool): Outlet {
  return pool.openOutlet({
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
  views: SHELF_VIEWS,
  workerEntry: new URL('../../test/fakes/shelf-worker.ts', import.meta.url),
  clock: systemClock,
  logger: new RecordingLogger(),
});
await pool.start();
pool.setHosts([{ name: 'default', hostNames: ['*'] }]);
const outlet = openShelf(pool);
const line = '#EXT-X-PART:DURATION=0.500000,URI="part_0_11_0_video_j4QYcHK6_llhls.m4s?session=39_UEt7QoBb",INDEPENDENT=YES\n';
outlet.update({ put: 'list.m3u8', text: [line.repeat(Math.ceil(5000 / line.length)).slice(0, 5000)] });
outlet.store([Buffer.alloc(1000)]);
for (const [name, size] of Object.entries(sizes)) outlet.update({ put: name, spans: outlet.store([Buffer.alloc(size, 'v')]) });
const tls = process.argv[3] === 'tls';
if (tls) pool.setCertificates([{ hostNames: ['localhost'], ...selfSigned('localhost') }]);
const { port } = await pool.listen({ host: '127.0.0.1', port: 0, tls });
process.stdout.write(`${port}\n`);
process.on('SIGTERM', () => {
  void pool.stop().then(() => process.exit(0));
});
