import { randomBytes } from 'node:crypto';
import { chmod, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import { writeFileAtomic } from './atomic-file.ts';
import { setAside } from './set-aside.ts';

/** Name of the file in the state folder. */
export const ACCESS_TOKEN_FILE = 'access-token';

/**
 * The API token of an installation without a configured one: random, created at the first start and kept in the state folder with mode
 * 0600. Anything else with that name is set aside. Rejects, naming the file, if it cannot be stored.
 */
export async function loadOrCreateAccessToken(
  stateFolder: string,
  logger: Logger,
): Promise<{ token: string; file: string; created: boolean }> {
  const file = join(stateFolder, ACCESS_TOKEN_FILE);
  try {
    const token = (await readFile(file, 'utf8')).trim();
    if (token !== '') {
      await chmod(file, 0o600);
      return { token, file, created: false };
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EISDIR') await setAside(file, 'it is not a file', logger);
    else if (code !== 'ENOENT') throw error;
  }
  const token = randomBytes(24).toString('base64url');
  try {
    await writeFileAtomic(file, `${token}\n`, 0o600);
  } catch (error) {
    const why = messageOf(error);
    throw new Error(`the access token cannot be stored in ${file}: ${why}`, { cause: error });
  }
  return { token, file, created: true };
}
