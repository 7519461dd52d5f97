/** Joins table sections from the packets of one PID, ISO/IEC 13818-1 §2.4.4. */
import { crc32Mpeg } from './crc32.ts';

/** Longest section of a PAT or PMT: 3 bytes and a section_length of at most 1021 (§2.4.4.3, §2.4.4.8). */
const MAX_TABLE = 1024;
const SECTION_HEADER = 3;
const STUFFING = 0xff;
/** Header, fields and CRC of a section without any entry. */
const MIN_SECTION = 12;

/** Holds one section at a time. A broken section is counted and left out; the next one is found by its pointer field. */
export class SectionReader {
  /** Sections that were too long, truncated, or failed their CRC. */
  broken = 0;
  readonly #onSection: (section: Uint8Array) => void;
  readonly #bytes: Uint8Array;
  /** Bytes collected; -1 while waiting for the beginning of a section. */
  #length = -1;

  /** The section passed on, CRC included, is valid during the call only. A section of more than `maxLength` bytes counts as broken. */
  constructor(onSection: (section: Uint8Array) => void, maxLength = MAX_TABLE) {
    this.#onSection = onSection;
    this.#bytes = new Uint8Array(maxLength);
  }

  /** Takes the payload of a packet; `unitStart`: it begins with a pointer field. */
  push(payload: Uint8Array, unitStart: boolean): void {
    if (!unitStart) {
      this.#append(payload);
      return;
    }
    const pointer = payload[0] ?? STUFFING;
    if (1 + pointer > payload.length) {
      this.lose();
      return;
    }
    this.#append(payload.subarray(1, 1 + pointer));
    this.lose();
    this.#length = 0;
    this.#append(payload.subarray(1 + pointer));
  }

  /** Drops the current section, of which a packet is missing. */
  lose(): void {
    if (this.#length > 0) this.broken += 1;
    this.#length = -1;
  }

  #append(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length && this.#length >= 0) {
      // After the last section only stuffing follows, up to the next pointer field.
      if (this.#length === 0 && bytes[at] === STUFFING) {
        this.#length = -1;
        return;
      }
      const wanted = this.#wanted();
      const taken = Math.min(wanted - this.#length, bytes.length - at);
      this.#bytes.set(bytes.subarray(at, at + taken), this.#length);
      this.#length += taken;
      at += taken;
      if (this.#length < wanted) return;
      if (wanted > SECTION_HEADER) this.#finish();
      else if (this.#wanted() > this.#bytes.length || this.#wanted() < MIN_SECTION) this.lose();
    }
  }

  /** Bytes to collect: the header first, then the announced length. */
  #wanted(): number {
    if (this.#length < SECTION_HEADER) return SECTION_HEADER;
    return SECTION_HEADER + ((((this.#bytes[1] ?? 0) & 0xf) << 8) | (this.#bytes[2] ?? 0));
  }

  #finish(): void {
    const section = this.#bytes.subarray(0, this.#length);
    this.#length = 0;
    if (crc32Mpeg(section) === 0) this.#onSection(section);
    else this.broken += 1;
  }
}
