import { randomBytes } from 'node:crypto';
import { connect as connectHttp2 } from 'node:http2';
import { request } from 'node:https';
import { connect as connectTls } from 'node:tls';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { BlobFeed, type BlobPool, startBlobPool } from '../../test/fakes/blob-pool.ts';
import { RawClient } from '../../test/fakes/raw-client.ts';
import { selfSigned } from '../../test/fakes/self-signed.ts';
import { DEFAULT_HTTP_LIMITS } from './http-limits.ts';

const DEFAULT = { hostNames: ['localhost'], ...selfSigned('localhost') };
const WILDCARD = { hostNames: ['*.example'], ...selfSigned('any.example') };

interface Answer {
  status: number;
  headers: Record<string, unknown>;
  body: Buffer;
}

describe.each([
  ['in the main thread', 0, ''],
  ['in two workers', 2, ''],
  ['through Node alone', 0, 'off'],
])('TLS delivery %s', (_name, threads, native) => {
  let started: BlobPool;
  let port: number;
  let blobs: BlobFeed;

  beforeEach(async () => {
    if (native !== '') vi.stubEnv('MILLRACE_NATIVE', native);
    started = await startBlobPool(threads, { http: { ...DEFAULT_HTTP_LIMITS, sendTime: 1500, sweepInterval: 50 } });
    started.pool.setCertificates([DEFAULT, WILDCARD]);
    started.pool.setDefaultCrossDomains({ urls: ['*'], headers: [] });
    ({ port } = await started.pool.listen({ host: '127.0.0.1', port: 0, tls: true }));
    blobs = new BlobFeed(started.pool, 'stream');
  });

  afterEach(async () => {
    vi.unstubAllEnvs();
    await started.pool.stop();
  });

  async function http2(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    const session = connectHttp2(`https://localhost:${port}`, { rejectUnauthorized: false });
    try {
      const stream = session.request({ ':path': path, ...headers });
      return await new Promise<Answer>((resolve, reject) => {
        const chunks: Buffer[] = [];
        let head: Record<string, unknown> = {};
        stream.on('response', (answer) => {
          head = answer;
        });
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('end', () => resolve({ status: Number(head[':status']), headers: head, body: Buffer.concat(chunks) }));
        stream.on('error', reject);
        session.on('error', reject);
      });
    } finally {
      session.close();
    }
  }

  async function http1(path: string): Promise<Answer> {
    return new Promise<Answer>((resolve, reject) => {
      const asked = request({
        host: '127.0.0.1',
        servername: 'localhost',
        port,
        path,
        rejectUnauthorized: false,
        headers: { host: 'localhost' },
      });
      asked.on('error', reject);
      asked.on('response', (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(chunks) }));
      });
      asked.end();
    });
  }

  function certificateFor(servername: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connectTls({ port, host: '127.0.0.1', servername, rejectUnauthorized: false }, () => {
        resolve(socket.getPeerX509Certificate()?.subjectAltName ?? '');
        socket.destroy();
      });
      socket.on('error', reject);
    });
  }

  test('answers HTTP/2 and HTTP/1.1 alike', async () => {
    const media = randomBytes(500_000);
    blobs.putBytes('seg', media);
    for (const answer of [await http2('/app/stream/seg'), await http1('/app/stream/seg')]) {
      expect(answer.status).toBe(200);
      expect(answer.headers).toMatchObject({
        server: 'Millrace',
        vary: 'Origin',
        'access-control-allow-origin': '*',
        'content-length': '500000',
      });
      expect(answer.body.equals(media)).toBe(true);
    }
    const range = await http2('/app/stream/seg', { range: 'bytes=10-19' });
    expect([range.status, range.headers['content-range'], range.body]).toEqual([206, 'bytes 10-19/500000', media.subarray(10, 20)]);
    const head = await http2('/app/stream/seg', { ':method': 'HEAD' });
    expect([head.status, head.headers['content-length'], head.body.length]).toEqual([200, '500000', 0]);
    expect((await http2('/app/stream/none')).status).toBe(404);
    expect((await http2('/app/stream/%zz')).status).toBe(400);
    expect((await http2('/app/stream/seg', { ':method': 'OPTIONS' })).headers['access-control-allow-private-network']).toBe('true');
    expect((await http2('/app/stream/seg', { ':method': 'POST' })).status).toBe(405);
    await expect.poll(() => inFlight(started.pool)).toBe(0);
    // TLS is not sent by the system from memory files.
    for (const answer of [await http2('/app/stream/seg'), await http1('/app/stream/seg')]) expect(answer.body.equals(media)).toBe(true);
    const reports = started.pool.status().threads.map(({ report }) => report);
    expect(reports.length).toBeGreaterThan(0);
    await expect.poll(() => started.pool.status().threads.every(({ report }, n) => report !== reports[n])).toBe(true);
    expect(started.pool.status().threads.map(({ report }) => report?.hot.bytes)).toEqual(reports.map(() => 0));
  });

  test('a waiting HTTP/2 request is answered later, or forgotten when its stream is reset', async () => {
    const later = http2('/app/stream/wait-part');
    await expect.poll(() => waitingNow(started.pool)).toBe(1);
    blobs.putText('part', 'late');
    expect((await later).body.toString()).toBe('late');
    const session = connectHttp2(`https://localhost:${port}`, { rejectUnauthorized: false });
    const stream = session.request({ ':path': '/app/stream/wait-never' });
    stream.on('error', () => {});
    await expect.poll(() => waitingNow(started.pool)).toBe(1);
    stream.close(8);
    await expect.poll(() => waitingNow(started.pool)).toBe(0);
    session.destroy();
  });

  test('an HTTP/2 client that does not read, or leaves in the middle, frees the memory', async () => {
    blobs.putBytes('seg', randomBytes(20_000_000));
    const session = connectHttp2(`https://localhost:${port}`, { rejectUnauthorized: false });
    session.on('error', () => {});
    const stalled = session.request({ ':path': '/app/stream/seg' });
    stalled.on('error', () => {});
    stalled.pause();
    const leaving = session.request({ ':path': '/app/stream/seg' });
    leaving.on('error', () => {});
    leaving.once('data', () => leaving.close(8));
    await expect.poll(() => inFlight(started.pool)).toBeGreaterThan(0);
    await expect.poll(() => inFlight(started.pool), { timeout: 5000 }).toBe(0);
    session.destroy();
  });

  test('a malformed HTTP/1.1 request is answered 400', async () => {
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connectTls({ port, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false }, () =>
        socket.write('nonsense\r\n\r\n'),
      );
      socket.on('data', (chunk: Buffer) => resolve(chunk.toString()));
      socket.on('error', reject);
    });
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  });

  test('a client that stops in the TLS handshake is cut off at the deadline of a request header', async () => {
    const limits = { http: { ...DEFAULT_HTTP_LIMITS, headerTime: 300 } };
    const { pool } = await startBlobPool(threads, limits);
    pool.setCertificates([DEFAULT]);
    const { port: impatient } = await pool.listen({ host: '127.0.0.1', port: 0, tls: true });
    const client = await RawClient.open(impatient);
    client.send(Buffer.from('1603010200010001fc0303', 'hex'));
    await expect.poll(() => client.socket.destroyed).toBe(true);
    await pool.stop();
  });

  test('plain HTTP to the TLS port, and TLS to a plain port, log one line per port', async () => {
    const plain = await started.pool.listen({ host: '127.0.0.1', port: 0, tls: false });
    for (let n = 0; n < 3; n += 1) {
      const client = await RawClient.open(port);
      client.send('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
      await expect.poll(() => client.socket.destroyed).toBe(true);
      const shaking = connectTls({ port: plain.port, host: '127.0.0.1', rejectUnauthorized: false });
      const fault = await new Promise((resolve) => shaking.once('error', resolve));
      expect(fault).toMatchObject({ code: 'ERR_SSL_WRONG_VERSION_NUMBER' });
    }
    const said = (): unknown[] => started.logger.lines.map(({ level, message, fields }) => [level, message, fields['peer']]);
    const expected = [
      `plain HTTP was spoken to port ${port}, which speaks TLS: use https://`,
      `TLS was spoken to port ${plain.port}, which speaks plain HTTP: use http://, or the port of TLSPort, which needs a certificate`,
    ].map((why) => ['warn', `HTTP connections closed: ${why}`, '127.0.0.1']);
    // Each thread has a line of its own.
    await expect.poll(said).toEqual(expect.arrayContaining(expected));
    expect(said().length).toBeLessThanOrEqual(2 * Math.max(1, threads));
  });

  test('chooses the certificate by server name and adopts new ones while it runs', async () => {
    expect(await certificateFor('localhost')).toBe('DNS:localhost');
    expect(await certificateFor('deep.example')).toBe('DNS:any.example');
    expect(await certificateFor('unknown.test')).toBe('DNS:localhost');
    started.pool.setCertificates([{ hostNames: ['localhost'], ...selfSigned('renewed.test') }]);
    await expect.poll(() => certificateFor('localhost')).toBe('DNS:renewed.test');
    await expect.poll(() => certificateFor('deep.example')).toBe('DNS:renewed.test');
  });

  test('offers HTTP/1.1 only when HTTP/2 is off', async () => {
    const { pool } = await startBlobPool(threads, {}, { http2: false });
    pool.setCertificates([DEFAULT]);
    const { port: old } = await pool.listen({ host: '127.0.0.1', port: 0, tls: true });
    const chosen = (at: number, ALPNProtocols: string[]): Promise<string | false | null> =>
      new Promise((resolve) => {
        const socket = connectTls({ port: at, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false, ALPNProtocols });
        socket.once('error', () => resolve(null));
        socket.once('secureConnect', () => {
          resolve(socket.alpnProtocol);
          socket.destroy();
        });
      });
    try {
      expect([await chosen(port, ['h2', 'http/1.1']), await chosen(port, ['http/1.1'])]).toEqual(['h2', 'http/1.1']);
      expect([await chosen(old, ['h2', 'http/1.1']), await chosen(old, ['h2'])]).toEqual(['http/1.1', null]);
    } finally {
      await pool.stop();
    }
  });

  test('serves no old certificate after the new ones were reported as used', async () => {
    for (let n = 0; n < 10; n += 1) {
      const renewed = { hostNames: ['localhost'], ...selfSigned(`renewed-${n}.test`) };
      // A hundred hosts are a message that takes its time.
      const others = Array.from({ length: 100 }, (_, at) => ({ ...WILDCARD, hostNames: [`${at}.test`] }));
      await started.pool.setCertificates([renewed, ...others]);
      // Whichever thread takes the connection.
      const shown = await Promise.all(Array.from({ length: 4 }, () => certificateFor('localhost')));
      expect(new Set(shown)).toEqual(new Set([`DNS:renewed-${n}.test`]));
    }
  });

  test('reports certificates as in use when all threads have answered, even with an error', async () => {
    const order: string[] = [];
    const broken = { hostNames: ['localhost'], cert: 'nonsense', key: 'nonsense' };
    const told = [started.pool.setCertificates([broken]), started.pool.setCertificates([DEFAULT])];
    const said = told.map((done, n) => done.then(() => order.push(['broken', 'good'][n] ?? '')));
    // Nothing has left yet.
    await Promise.resolve().then(() => Promise.resolve());
    expect(order).toEqual([]);
    await Promise.all(said);
    expect(order).toEqual(['broken', 'good']);
  });

  test('a broken certificate is logged and the old one stays', async () => {
    started.pool.setCertificates([{ hostNames: ['localhost'], cert: 'nonsense', key: 'nonsense' }]);
    await expect.poll(() => started.logger.lines.some(({ level }) => level === 'error')).toBe(true);
    expect(await certificateFor('localhost')).toBe('DNS:localhost');
  });
});

function waitingNow(pool: BlobPool['pool']): number {
  return pool.status().threads.reduce((sum, { report }) => sum + (report?.waiting ?? 0), 0);
}

function inFlight(pool: BlobPool['pool']): number {
  return pool.status().threads.reduce((sum, { report }) => sum + (report?.blocksInFlight ?? 0), 0);
}
