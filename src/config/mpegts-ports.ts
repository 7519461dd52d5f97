/** A port feeds one stream: no two entries of stream maps may name the same. */
import type { ApplicationConfig } from './schema/application.ts';

/** An application as far as its ports go. */
export interface MpegtsPortUser {
  readonly vhost: string;
  readonly config: ApplicationConfig;
}

/** Two entries of stream maps that name one port. */
export interface SharedMpegtsPort {
  /** In words for people. */
  readonly message: string;
  /** The later one. */
  readonly entry: object;
}

/** Null when no two entries of stream maps name one port. */
export function sharedMpegtsPort(users: Iterable<MpegtsPortUser>): SharedMpegtsPort | null {
  const owners = new Map<number, string>();
  for (const { vhost, config } of users) {
    for (const entry of config.providers?.mpegts?.streams ?? []) {
      const own = `stream '${entry.name}' of application '${vhost}/${config.name}'`;
      for (const { first, last } of entry.port.ranges) {
        for (let number = first; number <= last; number += 1) {
          const owner = owners.get(number);
          if (owner !== undefined)
            return { message: `MPEG-TS port ${number} feeds both ${owner} and ${own}: a port feeds one stream`, entry };
          owners.set(number, own);
        }
      }
    }
  }
  return null;
}
