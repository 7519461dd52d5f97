import { constants } from 'node:fs';
import { open } from 'node:fs/promises';

/** The bytes of a regular file. Rejects when it is larger than `limit` bytes or no file, and with the errors of the file system. */
export async function readWhole(path: string, limit: number): Promise<Buffer> {
  // A pipe would keep a thread of the file system waiting for its writer for ever.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const status = await handle.stat();
    if (!status.isFile()) throw new Error(`${path} is not a file`);
    if (status.size > limit) throw new Error(`${path} has ${status.size} bytes, at most ${limit} are taken`);
    // The file may be growing: the rest is ignored.
    const bytes = Buffer.alloc(status.size);
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, 0);
    return bytes.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}
