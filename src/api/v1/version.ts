import { Type } from '../../util/typebox.ts';
import { ok } from '../envelope.ts';
import type { Route } from '../route.ts';

/** The release of the reference server whose API this one speaks: clients choose the forms of answers by it. */
const SPOKEN = '0.20.0';

const Version = Type.Object({
  gitVersion: Type.String({ description: 'Release and commit of Millrace; the commit is left out where nobody knows it' }),
  millraceVersion: Type.String({ description: 'Release of Millrace' }),
  version: Type.String({ description: `Release of OvenMediaEngine whose API is spoken: ${SPOKEN}` }),
});

/** Which Millrace answers: release and commit. */
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
