import { Type } from '../../util/typebox.ts';
import { ok } from '../envelope.ts';
import type { Route } from '../route.ts';

const port = Type.Integer({ description: 'A port', minimum: 0 });
const Pair = Type.Optional(
  Type.Object({ port: Type.Optional(port), tlsPort: Type.Optional(port) }, { description: 'Ports without and with TLS' }),
);
const Several = Type.Optional(Type.Array(port));

const Server = Type.Object({
  providers: Type.Object(
    { rtmp: Pair, srt: Several, webrtc: Pair },
    { description: 'Ports for publishers; a protocol without a port is absent' },
  ),
  publishers: Type.Object(
    { hls: Pair, llhls: Pair, srt: Several, thumbnail: Pair, webrtc: Pair },
    { description: 'Ports for viewers; a protocol without a port is absent' },
  ),
  draining: Type.Boolean({ description: 'Whether the server takes no new sessions and publishers' }),
  mayWrite: Type.Boolean({ description: 'Whether the access token of this request may write' }),
  readOnlyVirtualHosts: Type.Array(Type.String(), {
    description: 'Names of the virtual hosts that a configuration file declares: the API cannot change them',
  }),
});

const Draining = Type.Object({
  draining: Type.Boolean({ description: 'Whether the server takes no new sessions and publishers' }),
  publishers: Type.Integer({ description: 'Published streams', minimum: 0 }),
  sessions: Type.Integer({ description: 'Viewers', minimum: 0 }),
});

/** Both actions may be requested at any time, and return the clients that remain. */
function drainRoute(action: 'drain' | 'resume', active: boolean, summary: string): Route {
  return {
    method: 'POST',
    path: `/v1/server:${action}`,
    level: 'server',
    summary,
    response: Draining,
    handle: ({ control }) => {
      control.drain.set(active);
      return ok({ draining: control.drain.active, ...control.presence });
    },
  };
}

/** The server's addresses, for programs that show URLs to people. */
export const serverRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/server',
    level: 'server',
    summary: 'Media ports, and virtual hosts that cannot be changed',
    response: Server,
    handle: ({ server, control, mayWrite }) =>
      ok({
        ...server.listeners,
        draining: control.drain.active,
        mayWrite,
        readOnlyVirtualHosts: control.virtualHosts.filter(({ readOnly }) => readOnly).map(({ name }) => name),
      }),
  },
  drainRoute('drain', true, 'Refuse new sessions and publishers; existing ones continue'),
  drainRoute('resume', false, 'Accept sessions and publishers again'),
];
