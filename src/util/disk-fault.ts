/** Public texts for errors of the file system: no paths. */

const WORDS: Readonly<Record<string, string>> = {
  ENOSPC: 'no space is left on the disk',
  EDQUOT: 'the disk quota is used up',
  EROFS: 'the file system is read-only',
  EACCES: 'permission is denied',
  EPERM: 'permission is denied',
  ENOENT: 'its folder is gone',
  EIO: 'the disk has an input/output error',
  EMFILE: 'too many files are open',
  ENFILE: 'too many files are open',
};

/** The fault as part of a sentence; null when `error` is no fault of a file system. */
export function diskFault(error: unknown): string | null {
  const { code, errno } = (error ?? {}) as NodeJS.ErrnoException;
  if (typeof code !== 'string') return null;
  const words = WORDS[code];
  if (words !== undefined) return words;
  return typeof errno === 'number' ? `the file system refused (${code})` : null;
}
