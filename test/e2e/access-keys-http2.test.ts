/** Play tokens over HTTP/2: one connection may carry requests with several tokens, as that of a proxy does. */
import { writeFileSync } from 'node:fs';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { selfSigned } from '../fakes/self-signed.ts';
import { apiPath } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { publish } from '../harness/publisher.ts';
import { startServer } from '../harness/server.ts';
import { whepOffer } from '../harness/whep-offer.ts';

const HOST = 'localhost';
const [SITE, FRIEND] = ['the-token-of-the-site', 'the-token-of-a-friend'];
const PROFILE = {
  name: 'pass',
  outputStreamName: '${OriginStreamName}',
  encodes: { videos: [{ name: 'v', bypass: true }], audios: [{ name: 'a', bypass: true }] },
};

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

async function ask(session: ClientHttp2Session, target: string, headers: Record<string, string> = {}, body = ''): Promise<Answer> {
  const request = session.request({ ':path': target, ...(body !== '' && { ':method': 'POST' }), ...headers });
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>();
  request.once('response', resolve).once('error', reject);
  // Requests without a body have ended already.
  if (body !== '') request.end(body);
  const answered = await promise;
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += String(chunk);
  return { status: Number(answered[':status']), headers: answered, text };
}

const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

test('each request of an HTTP/2 connection is admitted by its own token, until the token is removed', async () => {
  const [rtmp = 0, http = 0] = await freePorts(2);
  const server = await startServer({ tls: { rtmp, http }, webrtc: {}, hostNames: ['127.0.0.1'] });
  onTestFinished(() => server.close());
  const { cert, key } = selfSigned(HOST);
  const [certPath, keyPath] = ['cert.pem', 'key.pem'].map((name) => path.join(server.folder, name)) as [string, string];
  writeFileSync(certPath, cert);
  writeFileSync(keyPath, key);
  const playTokens = [
    { name: 'site', token: SITE },
    { name: 'friend', token: FRIEND },
  ];
  const publishers = { llhls: { segmentDuration: 1, chunkDuration: 0.5 }, webrtc: {} };
  const application = { name: 'app', type: 'live', publishers, outputProfiles: { outputProfile: [PROFILE] }, playTokens };
  await server.api.create('/v1/vhosts', [{ name: 'keyed', host: { names: [HOST], tls: { certPath, keyPath } } }]);
  await server.api.create('/v1/vhosts/keyed/apps', [application]);
  const encoder = publish({ url: server.rtmp('live', 'app', HOST), width: 320, height: 180, videoKbps: 300 });
  onTestFinished(async () => {
    await encoder.stop();
  });
  await encoder.sent(60);

  const session = await until('the TLS port', async () => {
    const connecting = connectHttp2(`https://${HOST}:${http}`, { rejectUnauthorized: false });
    const isOpen = await new Promise<boolean>((resolve) => {
      connecting.once('connect', () => resolve(true)).once('error', () => resolve(false));
    });
    return isOpen ? connecting : null;
  });
  onTestFinished(() => session.destroy());
  expect(session.alpnProtocol).toBe('h2');

  const master = '/app/live/llhls.m3u8';
  await until('the playlist', async () => (await ask(session, master, bearer(SITE))).status === 200);
  // Concurrent requests, because the token of one client must not admit others.
  const beginnings: readonly (readonly [target: string, headers: Record<string, string>, status: number])[] = [
    [master, {}, 401],
    [master, bearer('not-a-token-of-this-app'), 401],
    [`${master}?token=not-a-token-of-this-app`, {}, 401],
    [`${master}?token=${SITE}`, {}, 200],
    [`${master}?token=${FRIEND}`, {}, 200],
    [master, bearer(FRIEND), 200],
    [master, { authorization: FRIEND }, 401],
  ];
  const answers = await Promise.all(beginnings.map(([target, headers]) => ask(session, target, headers)));
  expect(answers.map(({ status }) => status)).toEqual(beginnings.map(([, , status]) => status));
  for (const { status, headers } of answers) expect(headers['www-authenticate']).toBe(status === 401 ? 'Bearer' : undefined);
  const playlists = [3, 4].map((index) => /^[^#\s]\S*m3u8\S*$/m.exec(answers[index]?.text ?? '')?.[0] ?? '') as [string, string];
  const statuses = (): Promise<number[]> => Promise.all(playlists.map(async (target) => (await ask(session, target)).status));
  expect(await statuses()).toEqual([200, 200]);
  const [withoutSession] = playlists.map((target) => target.replace(/\?.*/, ''));
  expect((await ask(session, withoutSession ?? '', bearer(SITE))).status).toBe(401);

  const { sdp, close } = await whepOffer();
  onTestFinished(close);
  const whep = (headers: Record<string, string>): Promise<Answer> =>
    ask(session, '/app/live?direction=whep', { 'content-type': 'application/sdp', ...headers }, sdp);
  expect([(await whep({})).status, (await whep(bearer(SITE))).status]).toEqual([401, 201]);

  expect((await server.api.call('DELETE', `${apiPath.app('keyed', 'app')}/playTokens/site`)).status).toBe(200);
  await until('the end of the session', async () => (await statuses())[0] === 401);
  expect(await statuses()).toEqual([401, 200]);
  expect([(await ask(session, master, bearer(SITE))).status, (await ask(session, master, bearer(FRIEND))).status]).toEqual([401, 200]);
  // The removal has ended the token's session, but not the connection or the encoder.
  expect([session.closed, session.destroyed]).toEqual([false, false]);
});
