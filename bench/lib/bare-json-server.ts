/** The minimum that node:http can do for a JSON answer: the yardstick of the API bench. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const answer: unknown = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'));

const server = createServer((_request, response) => {
  const body = JSON.stringify(answer);
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) });
  response.end(body);
});
server.listen(0, '127.0.0.1', () => console.log(`port ${(server.address() as AddressInfo).port}`));
