import { createServer, type TLSSocket, connect as tlsConnect } from 'node:tls';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { selfSigned } from '../../../test/fakes/self-signed.ts';
import { CertificateChoice } from './certificate-choice.ts';

const [everybody, one, some] = ['everybody.test', 'one.test', 'some.test'].map((name) => selfSigned(name)) as [Pem, Pem, Pem];
type Pem = ReturnType<typeof selfSigned>;

const choice = new CertificateChoice();
const server = createServer({ SNICallback: choice.answer });

beforeEach(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
afterEach(() => new Promise((resolve) => server.close(resolve)));

/** Common name of the certificate a client gets, or the code of its failure. */
function asked(servername?: string): Promise<string> {
  const { port } = server.address() as { port: number };
  return new Promise((resolve) => {
    const socket: TLSSocket = tlsConnect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...(servername && { servername }) });
    socket.once('secureConnect', () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'failed'));
  });
}

test('a literal name is preferred to earlier patterns; unknown names get the first certificate', async () => {
  const list = [
    { hostNames: ['some.test', '*.some.test'], ...some },
    { hostNames: ['*.test'], ...everybody },
    { hostNames: ['One.test'], ...one },
  ];
  choice.replace(list, server);
  expect(await asked('one.TEST')).toBe('one.test');
  expect(await asked('a.some.test')).toBe('some.test');
  expect(await asked('two.test')).toBe('everybody.test');
  expect(await asked('example.org')).toBe('some.test');
  expect(await asked()).toBe('some.test');
});

test('certificates are added, changed and removed while the port is open', async () => {
  choice.replace([], server);
  expect(await asked('one.test')).toMatch(/^(E|ERR_SSL)/);
  expect(await asked()).toMatch(/^ERR_SSL/);
  choice.replace([{ hostNames: ['one.test'], ...one }], server);
  expect([await asked('one.test'), await asked()]).toEqual(['one.test', 'one.test']);
  expect(() => choice.replace([{ hostNames: ['one.test'], cert: 'x', key: 'y' }], server)).toThrow();
  expect(await asked('one.test')).toBe('one.test');
  choice.replace([], server);
  expect(await asked()).toMatch(/^ERR_SSL/);
});
