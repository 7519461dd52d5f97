/** MPEG-TS ports: each feeds one stream, so no two entries of stream maps may name the same port. */
import type { ApplicationConfig } from './schema/application.ts';

/** The members of an application that concern its ports. */
export interface MpegtsPortUser {
  readonly vhost: string;
  readonly config: ApplicationConfig;
}

/** Two entries of stream maps that name one port. */
export interface SharedMpegtsPort {
  /** For the log and the API. */
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
