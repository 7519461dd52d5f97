import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from 'vitest';
import { selfSigned } from '../../test/fakes/self-signed.ts';
import { controlSignature } from '../../test/support/control-signature.ts';
import { ControlServerClient, type ControlServerClientOptions, ControlServerFault } from './control-server-client.ts';

const SECRET = 'twsecret';
/** Longer than any request takes here, however busy the machine is. */
const LONG = { timeoutMs: 60_000 };

const open: { close(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.close();
});

async function portOf(server: net.Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as net.AddressInfo).port;
}

/** An HTTP server that answers with `answer`. */
async function serve(answer: RequestListener): Promise<string> {
  const server: Server = createServer(answer);
  open.push({
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  });
  return `http://127.0.0.1:${await portOf(server)}/control`;
}

/** A server that answers every request with `bytes`; null: it closes the connection. */
async function lie(bytes: string | null, ends = true): Promise<string> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('data', () => {
      if (bytes === null) socket.destroy();
      else if (ends) socket.end(bytes);
      else socket.write(bytes);
    });
  });
  open.push({
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  });
  return `http://127.0.0.1:${await portOf(server)}/control`;
}

function clientOf(url: string, options: Partial<ControlServerClientOptions> = {}): ControlServerClient {
  const client = new ControlServerClient({ url, secretKey: SECRET, ...options });
  open.push(client);
  return client;
}

async function faultOf(question: Promise<unknown>): Promise<string> {
  const outcome = await question.then(
    (answer) => answer,
    (error: unknown) => error,
  );
  if (!(outcome instanceof ControlServerFault)) throw new Error(`answered: ${JSON.stringify(outcome)}`);
  return `${outcome.kind}: ${outcome.message.replace(/:\d{2,5}\b/g, ':PORT')}`;
}

const AT = 'http://127.0.0.1:PORT/control';

describe('a question', () => {
  test('is JSON with the signature of its very bytes, and its answer an object', async () => {
    const seen: { method: string; url: string; headers: IncomingHttpHeaders; body: string }[] = [];
    const url = await serve(async (request, response) => {
      seen.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers, body: await text(request) });
      response.end('{"allowed":true,"reason":"ö"}');
    });
    expect(await clientOf(`${url}?a=b`).ask({ name: 'ä' }, LONG)).toEqual({ allowed: true, reason: 'ö' });
    const [{ method, url: path, headers, body }] = seen as [(typeof seen)[number]];
    expect([method, path, JSON.parse(body)]).toEqual(['POST', '/control?a=b', { name: 'ä' }]);
    expect(headers).toMatchObject({ 'content-type': 'application/json', accept: 'application/json' });
    expect(headers['x-ome-signature']).toBe(controlSignature(SECRET, body));
  });

  test('is signed as the reference server signs', async () => {
    const body =
      '{"client":{"address":"127.0.0.1","port":58890,"real_ip":"127.0.0.1","user_agent":"me/1"},"request":{"direction":"outgoing","protocol":"LLHLS","status":"opening","time":"2026-11-21T09:52:58.509+00:00","url":"http://127.0.0.1:3333/app/stream/llhls.m3u8?token=abc"}}';
    const seen: { signature: unknown; body: string }[] = [];
    const url = await serve(async (request, response) => {
      seen.push({ signature: request.headers['x-ome-signature'], body: await text(request) });
      response.end('{}');
    });
    await clientOf(url, { secretKey: 'admsecret' }).ask(JSON.parse(body), LONG);
    expect(seen).toEqual([{ signature: 'HSo3e8nQOhvbaH-FY_V8THq1I04', body }]);
  });

  test('reuses an open connection', async () => {
    const sockets = new Set<net.Socket>();
    const url = await serve((request, response) => {
      sockets.add(request.socket);
      request.resume().on('end', () => response.end('{}'));
    });
    const client = clientOf(url);
    for (let n = 0; n < 5; n += 1) await client.ask({ n }, LONG);
    expect(sockets.size).toBe(1);
  });

  test('is asked again, once, when the server closes a reused connection', async () => {
    let requests = 0;
    const url = await serve((request, response) => {
      requests += 1;
      // Each connection gives one answer, although it claims to stay open.
      if (request.socket.bytesWritten > 0) request.socket.resetAndDestroy();
      else request.resume().on('end', () => response.end(JSON.stringify({ requests })));
    });
    const client = clientOf(url);
    expect(await client.ask({}, LONG)).toEqual({ requests: 1 });
    expect(await client.ask({}, LONG)).toEqual({ requests: 3 });
  });
});

describe('without an answer', () => {
  test.each([
    ['hangs up', null, true, `connection: ${AT} cannot be asked: socket hang up`],
    [
      'closes amid its answer',
      'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"a":',
      true,
      `connection: ${AT} has not finished its answer: aborted`,
    ],
    ['does not speak HTTP', 'SSH-2.0-x\r\n\r\n', true, `answer: ${AT} does not answer in HTTP: Parse Error`],
    ['has endless headers', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}`, false, `answer: ${AT} does not answer in HTTP: Parse Error`],
    ['does not answer JSON', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno', true, `answer: ${AT} does not answer with JSON`],
    ['says nothing', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', true, `answer: ${AT} does not answer with JSON`],
    ['answers a list', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]', true, `answer: ${AT} does not answer with a JSON object`],
    ['says null', 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnull', true, `answer: ${AT} does not answer with a JSON object`],
    ['fails', 'HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n{}', true, `answer: ${AT} answers with status 500`],
    ['answers 201', 'HTTP/1.1 201 Yes\r\nContent-Length: 2\r\n\r\n{}', true, `answer: ${AT} answers with status 201`],
    [
      'announces a body that is too long',
      'HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n',
      false,
      `answer: ${AT} answers with more than 1048576 bytes`,
    ],
  ])('a server that %s', async (_what, bytes, ends, expected) => {
    const client = clientOf(await lie(bytes, ends));
    expect(await faultOf(client.ask({}, LONG))).toContain(expected);
    expect(client.pending).toBe(0);
  });

  test('a redirect is not followed', async () => {
    let followed = 0;
    const elsewhere = await serve((_, response) => {
      followed += 1;
      response.end('{"allowed":true}');
    });
    const url = await serve((_, response) => response.writeHead(302, { Location: elsewhere }).end());
    expect(await faultOf(clientOf(url).ask({}, LONG))).toBe(`answer: ${AT} answers with status 302, and redirects are not followed`);
    expect(followed).toBe(0);
  });

  test('an endless answer is cut', async () => {
    const { promise: cut, resolve } = Promise.withResolvers<void>();
    const url = await serve((_, response) => {
      response.on('error', () => undefined).on('close', resolve);
      const more = (): void => {
        while (!response.destroyed && response.write('x'.repeat(10_000)));
      };
      response.on('drain', more);
      more();
    });
    expect(await faultOf(clientOf(url).ask({}, LONG))).toBe(`answer: ${AT} answers with more than 1048576 bytes`);
    await cut;
  });

  test('a server that hangs, or drips, is left at the deadline', async () => {
    const client = clientOf(await lie('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{', false));
    expect(await faultOf(client.ask({}, { timeoutMs: 50 }))).toBe(`connection: ${AT} has not answered within 50 ms`);
    const silent = clientOf(await serve(() => undefined));
    expect(await faultOf(silent.ask({}, { timeoutMs: 50 }))).toBe(`connection: ${AT} has not answered within 50 ms`);
  });

  test('the time in the queue counts, and the queue is bounded', async () => {
    const client = clientOf(await serve(() => undefined), { maxPending: 100 });
    const questions = Array.from({ length: 100 }, () => faultOf(client.ask({}, { timeoutMs: 300 })));
    expect(await faultOf(client.ask({}, LONG))).toBe(`connection: ${AT} has 100 open requests already: no more are sent`);
    expect(new Set(await Promise.all(questions))).toEqual(new Set([`connection: ${AT} has not answered within 300 ms`]));
    expect(client.pending).toBe(0);
  });

  test('a closed port', async () => {
    const server = net.createServer();
    const port = await portOf(server);
    server.close();
    await once(server, 'close');
    const client = clientOf(`http://user:pass@127.0.0.1:${port}/control?secret=1`);
    expect(await faultOf(client.ask({}, LONG))).toBe(`connection: ${AT} cannot be asked: connect ECONNREFUSED 127.0.0.1:PORT`);
  });

  test('a self-signed certificate', async () => {
    const server = createTlsServer(selfSigned('control'), (_, response) => response.end('{"allowed":true}'));
    open.push(server);
    const client = clientOf(`https://127.0.0.1:${await portOf(server)}/control`);
    expect(await faultOf(client.ask({}, LONG))).toMatch(
      /^connection: https:\/\/127\.0\.0\.1:PORT\/control cannot be asked: self-signed certificate/,
    );
  });
});

describe('an end', () => {
  test('comes to all questions when the client is closed, and to later questions', async () => {
    const client = clientOf(await serve(() => undefined));
    const questions = [client.ask({}, LONG), client.ask({}, LONG)].map(faultOf);
    client.close();
    client.close();
    expect(await Promise.all(questions)).toEqual(Array(2).fill(`closed: ${AT} gets no more requests`));
    expect(await faultOf(client.ask({}, LONG))).toBe(`closed: ${AT} gets no more requests`);
  });

  test('comes to one question by its signal', async () => {
    const client = clientOf(await serve(() => undefined));
    const controller = new AbortController();
    const question = faultOf(client.ask({}, { ...LONG, signal: controller.signal }));
    controller.abort();
    expect(await question).toBe(`closed: ${AT} gets no more requests`);
    expect(await faultOf(client.ask({}, { ...LONG, signal: controller.signal }))).toBe(`closed: ${AT} gets no more requests`);
    expect(client.pending).toBe(0);
  });
});

test.each(['ftp://a/b', 'file:///etc/passwd'])('%s is refused as a control server', (url) => {
  expect(() => new ControlServerClient({ url, secretKey: '' })).toThrow('a control server is asked by http or https');
});
