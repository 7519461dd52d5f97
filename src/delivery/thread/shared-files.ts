/** Bytes of files (DVR segments) for answers. Viewers of the same file share one copy while any of them is served. */
import { open } from 'node:fs/promises';

/** A file in memory; the receiver calls `release` once. */
export interface FileLease {
  readonly bytes: Uint8Array;
  release(): void;
}

interface Loan {
  readonly bytes: Promise<Uint8Array>;
  users: number;
  /** Counted against the limit; 0 until the file is open. */
  size: number;
}

/** Keeps no unused file, so there is nothing to close. */
export class SharedFiles {
  readonly #limit: number;
  readonly #loans = new Map<string, Loan>();
  #bytes = 0;

  /** `limit`: bytes of all borrowed files. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Borrowed bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Reads a file, or shares a borrowed one. Rejects if it cannot be read; null if the limit is reached. */
  async borrow(path: string): Promise<FileLease | null> {
    const known = this.#loans.get(path);
    const loan = known ?? this.#lend(path);
    loan.users += 1;
    try {
      const bytes = await loan.bytes;
      let held = true;
      return {
        bytes,
        release: () => {
          if (held) this.#return(path, loan);
          held = false;
        },
      };
    } catch (error) {
      this.#return(path, loan);
      if (error instanceof NoRoom) return null;
      throw error;
    }
  }

  #lend(path: string): Loan {
    const reserve = (size: number): void => {
      if (this.#bytes + size > this.#limit) throw new NoRoom();
      this.#bytes += size;
      loan.size = size;
    };
    const loan: Loan = { bytes: readWhole(path, reserve), users: 0, size: 0 };
    this.#loans.set(path, loan);
    return loan;
  }

  #return(path: string, loan: Loan): void {
    loan.users -= 1;
    if (loan.users > 0) return;
    this.#bytes -= loan.size;
    if (this.#loans.get(path) === loan) this.#loans.delete(path);
  }
}

class NoRoom extends Error {
  override readonly name = 'NoRoom';
}

/** Reads the file at its present size; `reserve` gets the size first and may refuse by throwing. */
async function readWhole(path: string, reserve: (size: number) => void): Promise<Uint8Array> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    reserve(size);
    const bytes = Buffer.allocUnsafeSlow(size);
    let filled = 0;
    while (filled < size) {
      const { bytesRead } = await file.read(bytes, filled, size - filled, filled);
      if (bytesRead === 0) throw new Error(`${path} became shorter while it was read`);
      filled += bytesRead;
    }
    return bytes;
  } finally {
    await file.close();
  }
}
