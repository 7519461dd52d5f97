import { get as getSecurely } from 'node:https';
import { expect, test } from 'vitest';
import { BLOB_VIEWS } from '../../test/fakes/blob-views.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { selfSigned } from '../../test/fakes/self-signed.ts';
import { systemClock } from '../util/clock.ts';
import { DeliveryPool } from './pool/delivery-pool.ts';

test.each([
  { logConnections: true, changed: undefined, lines: 4 },
  { logConnections: false, changed: undefined, lines: 0 },
  { logConnections: false, changed: true, lines: 4 },
  { logConnections: true, changed: false, lines: 0 },
])(
  'connections are logged at their open and close when enabled: $logConnections, then $changed',
  async ({ logConnections, changed, lines }) => {
    const logger = new RecordingLogger();
    const pool = new DeliveryPool({ threads: 0, views: BLOB_VIEWS, logConnections, clock: systemClock, logger });
    await pool.start();
    if (changed !== undefined) pool.logConnections(changed);
    pool.setCertificates([{ hostNames: ['*'], ...selfSigned('localhost') }]);
    const plain = await pool.listen({ host: '127.0.0.1', port: 0, tls: false });
    const secure = await pool.listen({ host: '127.0.0.1', port: 0, tls: true });
    expect((await fetch(`http://127.0.0.1:${plain.port}/`, { headers: { connection: 'close' } })).status).toBe(404);
    const status = await new Promise((resolve, reject) => {
      const options = { rejectUnauthorized: false, headers: { connection: 'close' } };
      getSecurely(`https://127.0.0.1:${secure.port}/`, options, (answer) => resolve(answer.resume().statusCode)).on('error', reject);
    });
    expect(status).toBe(404);
    const connections = () => logger.lines.filter(({ message }) => message.startsWith('HTTP connection '));
    await expect.poll(connections).toHaveLength(lines);
    await pool.stop();
    const told = connections();
    for (const { level, fields } of told) expect([level, fields['peer']]).toEqual(['debug', '127.0.0.1']);
    expect(told.filter(({ message }) => /^HTTP connection closed: ./.test(message))).toHaveLength(lines / 2);
  },
);
