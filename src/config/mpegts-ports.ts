/** A port feeds one stream: no two entries of stream maps may name the same. */
import type { ApplicationConfig } from './schema/application.ts';

/** An application as far as its ports go. */
export interface MpegtsPortUser {
  readonly vhost: string;
  readonly config: ApplicationConfig;
}

/** Says which two entries of stream maps name one port, in words for people; null when none do. */
export function sharedMpegtsPort(users: Iterable<MpegtsPortUser>): string | null {
  const owners = new Map<number, string>();
  for (const { vhost, config } of users) {
    for (const { name, port } of config.providers?.mpegts?.streams ?? []) {
      const entry = `stream '${name}' of application '${vhost}/${config.name}'`;
      for (const { first, last } of port.ranges) {
        for (let number = first; number <= last; number += 1) {
          const owner = owners.get(number);
          if (owner !== undefined) return `MPEG-TS port ${number} feeds both ${owner} and ${entry}: a port feeds one stream`;
          owners.set(number, entry);
        }
      }
    }
  }
  return null;
}
