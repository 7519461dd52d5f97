/** Moves unusable files of the state folder out of the way: never deletes them, and logs their names. */
import { constants } from 'node:fs';
import { copyFile, mkdir, rename } from 'node:fs/promises';
import type { Logger } from '../util/logger.ts';

/** Renames `file` (or folder) to `<file>.broken-<time>`. Never rejects: a failure is logged. */
export async function setAside(file: string, why: string, logger: Logger): Promise<void> {
  const aside = `${file}.broken-${Date.now()}`;
  try {
    await rename(file, aside);
    logger.error({ file, setAside: aside, why }, `state file cannot be used and was set aside: ${why}`);
  } catch (error) {
    logger.error({ file, why, err: error }, `state file cannot be used and could not be set aside: ${why}`);
  }
}

/** Copies `file` to `<file>.broken-<time>`, because its usable part will replace it. False, with a log line, if it cannot be copied. */
export async function copyAside(file: string, why: string, logger: Logger): Promise<boolean> {
  const aside = `${file}.broken-${Date.now()}`;
  try {
    await copyFile(file, aside, constants.COPYFILE_EXCL);
    logger.error({ file, setAside: aside, why }, `parts of a state file cannot be used, a copy was set aside: ${why}`);
    return true;
  } catch (error) {
    logger.error({ file, why, err: error }, `parts of a state file cannot be used, and no copy could be set aside: ${why}`);
    return false;
  }
}

/** Creates `folder` and its parents; a file with its name is set aside. Rejects with the file system's error. */
export async function makeFolder(folder: string, logger: Logger): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    await setAside(folder, 'it is not a folder', logger);
    await mkdir(folder, { recursive: true });
  }
}
