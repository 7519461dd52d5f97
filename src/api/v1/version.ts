import { Type } from '../../util/typebox.ts';
import { ok } from '../envelope.ts';
import type { Route } from '../route.ts';

const Version = Type.Object({ gitVersion: Type.String(), version: Type.String() });

/** Which Millrace answers: release and commit. */
export const versionRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/version',
    level: 'server',
    summary: 'Version of the server',
    response: Version,
    handle: ({ server }) => ok({ gitVersion: server.gitVersion, version: server.version }),
  },
];
