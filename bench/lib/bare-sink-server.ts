/** Reads sockets and drops the data: the minimum that node:net can do for a stream. The yardstick of the ingest bench. */
import { type AddressInfo, createServer } from 'node:net';

let opened = 0;

const server = createServer((socket) => {
  opened += 1;
  console.log(`open ${opened}`);
  socket.on('data', () => {});
  socket.on('error', () => socket.destroy());
});
server.listen(0, '127.0.0.1', () => console.log(`port ${(server.address() as AddressInfo).port}`));
