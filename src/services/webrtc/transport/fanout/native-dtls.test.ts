/** The rest of a native DTLS connection after its handshake, against the library's own connection. */
import { describe, expect, test } from 'vitest';
import { type DtlsOutcome, type Handle, loadAddon } from '../../../../native/addon.ts';
import { createCertificate } from '../dtls-certificate.ts';

const { addon } = loadAddon();
/** The sanitizer keeps freed memory, to detect its use. */
const SANITIZED = (process.env['MILLRACE_NATIVE'] ?? '').includes('sanitized');
const CONNECTED = 1;
const CLOSED = 2;
const ALERT = 21;

describe.skipIf(addon === null)('a settled connection', () => {
  /** Both ends after the handshake; `drop` is asked about each datagram of the server. The client keeps the library's connection. */
  function connect(drop: (datagram: Buffer) => boolean = () => false): { server: Handle; client: Handle; lost: Buffer[] } {
    if (addon === null) throw new Error('no addon');
    const { certificate, key } = createCertificate(Date.now());
    const context = addon.dtlsContext(certificate, key);
    const [server, client] = [addon.dtlsOpen(context, true), addon.dtlsOpen(context, false)];
    const lost: Buffer[] = [];
    let toServer: readonly Buffer[] = addon.dtlsReceive(client, Buffer.alloc(0)).datagrams;
    let settled = false;
    while (toServer.length > 0) {
      const toClient = toServer.flatMap((datagram) => {
        const outcome = addon.dtlsReceive(server, datagram);
        if (outcome.state === CONNECTED && !settled) {
          settled = true;
          expect(addon.dtlsKeys(server)?.profile).toBe(7);
        }
        return outcome.datagrams;
      });
      lost.push(...toClient.filter((datagram) => drop(datagram)));
      toServer = toClient
        .filter((datagram) => !lost.includes(datagram))
        .flatMap((datagram) => addon.dtlsReceive(client, datagram).datagrams);
    }
    expect(settled).toBe(true);
    return { server, client, lost };
  }

  function receive(end: Handle, datagram: Buffer): DtlsOutcome {
    if (addon === null) throw new Error('no addon');
    return addon.dtlsReceive(end, datagram);
  }

  test('a closed handshake frees its memory, and may still be called', () => {
    if (addon === null) throw new Error('no addon');
    const { certificate, key } = createCertificate(Date.now());
    const context = addon.dtlsContext(certificate, key);
    const giveUp = (): Handle => {
      const end = addon.dtlsOpen(context, false);
      addon.dtlsReceive(end, Buffer.alloc(0));
      expect(addon.dtlsClose(end)).toMatchObject({ state: CLOSED, datagrams: [] });
      return end;
    };
    const ends = Array.from({ length: 200 }, giveUp);
    const before = process.memoryUsage().rss;
    for (let n = 0; n < 4000; n += 1) ends.push(giveUp());
    if (!SANITIZED) expect((process.memoryUsage().rss - before) / 4000).toBeLessThan(8192);
    const [end] = ends;
    expect([addon.dtlsReceive(end as Handle, Buffer.alloc(20, 22)), addon.dtlsClose(end as Handle)]).toMatchObject([
      { state: CLOSED },
      { state: CLOSED },
    ]);
    expect([addon.dtlsTick(end as Handle).state, addon.dtlsKeys(end as Handle)]).toEqual([CLOSED, null]);
  });

  test('its end is understood by the library', () => {
    const { server, client } = connect();
    const { datagrams } = addon?.dtlsClose(server) ?? { datagrams: [] };
    expect(datagrams).toHaveLength(1);
    expect(datagrams.map((datagram) => receive(client, datagram).state)).toEqual([CLOSED]);
  });

  test("it understands the library's end", () => {
    const { server, client } = connect();
    const { datagrams } = addon?.dtlsClose(client) ?? { datagrams: [] };
    expect(datagrams.map((datagram) => receive(server, datagram).state)).toEqual([CLOSED]);
  });

  test('two settled ends close each other', () => {
    const { server, client } = connect();
    expect(addon?.dtlsKeys(client)).not.toBeNull();
    const { datagrams } = addon?.dtlsClose(client) ?? { datagrams: [] };
    expect(datagrams.map((datagram) => receive(server, datagram).state)).toEqual([CLOSED]);
  });

  test('a forged alert does not end it', () => {
    const { server, client } = connect();
    const [alert = Buffer.alloc(0)] = addon?.dtlsClose(client).datagrams ?? [];
    expect(alert[0]).toBe(ALERT);
    for (let at = 0; at < alert.length; at += 1) {
      const forged = Buffer.from(alert);
      forged.writeUInt8(forged.readUInt8(at) ^ 1, at);
      // The 13 bytes of the head count too: type, version, epoch, sequence number, length.
      expect(receive(server, forged).state, `byte ${at}`).toBe(CONNECTED);
      expect(receive(server, alert.subarray(0, at)).state, `cut at ${at}`).toBe(CONNECTED);
    }
    expect(receive(server, Buffer.of(ALERT, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0)).state, 'in the clear').toBe(CONNECTED);
    expect(receive(server, alert).state).toBe(CLOSED);
  });

  test('a lost last flight is sent again when the client asks, a limited number of times', () => {
    const isLast = (datagram: Buffer): boolean => datagram[0] === 20 || datagram.includes(Buffer.of(20, 0xfe, 0xfd, 0, 0));
    const { server, client, lost } = connect(isLast);
    expect(lost.length).toBeGreaterThan(0);
    const question = Buffer.concat([Buffer.of(22, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 1, 0, 4), Buffer.alloc(4)]);
    const again = receive(server, question).datagrams;
    expect(again).toEqual(lost);
    let state = 0;
    for (const datagram of again) ({ state } = receive(client, datagram));
    expect(state).toBe(CONNECTED);
    for (let n = 0; n < 40; n += 1) receive(server, question);
    expect(receive(server, question).datagrams).toEqual([]);
  });
});
