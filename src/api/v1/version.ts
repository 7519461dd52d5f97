import { Type } from '../../util/typebox.ts';
import { ok } from '../envelope.ts';
import type { Route } from '../route.ts';

/** The release of the reference server whose API this server has: clients choose the forms of answers by it. */
const SPOKEN = '0.20.0';

const Version = Type.Object({
  gitVersion: Type.String({ description: 'Release and commit of Millrace; without the commit if it is not known' }),
  millraceVersion: Type.String({ description: 'Release of Millrace' }),
  version: Type.String({ description: `Release of OvenMediaEngine with the same API: ${SPOKEN}` }),
});

/** The release and commit of this server. */
export const versionRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/version',
    level: 'server',
    summary: 'Version of the server',
    response: Version,
    handle: ({ server }) => ok({ gitVersion: server.gitVersion, millraceVersion: server.version, version: SPOKEN }),
  },
];
