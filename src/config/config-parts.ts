import type { ServerConfig } from './schema/server.ts';

/** Everything in a configuration, piece by piece: the server, each virtual host and each application, each without those inside it. */
export function* configParts({ virtualHosts, ...server }: ServerConfig): Iterable<object> {
  yield server;
  for (const { applications, ...host } of virtualHosts) {
    yield host;
    yield* applications;
  }
}
