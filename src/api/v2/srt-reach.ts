/** Whether the SRT ports answer, tested by the server itself, because a browser cannot speak SRT. An extension of Millrace. */
import { lookup } from 'node:dns/promises';
import { probeSrt } from '../../transport/srt/srt-probe.ts';
import { type Clock, systemClock } from '../../util/clock.ts';
import { ALL_IPV4, ALL_IPV6 } from '../../util/listen-addresses.ts';
import { Semaphore } from '../../util/semaphore.ts';
import { Type } from '../../util/typebox.ts';
import { type Answer, ok } from '../envelope.ts';
import { ApiError } from '../errors.ts';
import type { Request, Route } from '../route.ts';

/** Limits of tested ports for each direction, and of addresses: all are tested at once. */
const MAX_PORTS = 4;
const MAX_ADDRESSES = 4;
const TIMEOUT_MS = 1000;
/** Time limit for resolving a name. */
const LOOKUP_MS = 2000;
const MAX_HOST_LENGTH = 253;
/** One request tests at a time. */
const turns = new Semaphore(1);

type Way = 'own' | 'host';

const TrialSchema = Type.Object(
  {
    address: Type.String({ description: 'Tested address' }),
    answered: Type.Boolean({ description: 'Whether an SRT handshake was answered within a second' }),
    direction: Type.Union([Type.Literal('publish'), Type.Literal('play')]),
    port: Type.Integer({ minimum: 0 }),
    roundTripMs: Type.Optional(Type.Number({ minimum: 0 })),
    way: Type.Union([Type.Literal('own'), Type.Literal('host')], {
      description:
        '`own`: an address that the server listens on, or loopback if it listens on all addresses; `host`: the address in the request',
    }),
  },
  { additionalProperties: false },
);

/** The server tests itself, so only a success over `host` says something about the way of other clients. */
export const srtReachRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v2/internals/srt',
    level: 'server',
    summary: 'Whether the SRT ports answer a handshake that the server itself sends',
    query: {
      host: 'Host name or address of the server that is tested, too. Only with a token that may write',
    },
    response: Type.Array(TrialSchema),
    handle: reach,
  },
];

async function reach({ server, query, mayWrite }: Request): Promise<Answer> {
  const host = query('host') ?? '';
  // A client that may write can cause calls to any address anyway, by a push.
  if (host !== '' && !mayWrite) throw new ApiError('MEMBER_INVALID', 'host', 'left out with a token that may only read');
  if (host.length > MAX_HOST_LENGTH) throw new ApiError('MEMBER_INVALID', 'host', `at most ${MAX_HOST_LENGTH} characters`);
  const { providers, publishers } = server.listeners;
  const ports = [
    ...(providers.srt ?? []).slice(0, MAX_PORTS).map((port) => ({ direction: 'publish', port }) as const),
    ...(publishers.srt ?? []).slice(0, MAX_PORTS).map((port) => ({ direction: 'play', port }) as const),
  ];
  return turns.take(async () => {
    const named = host === '' || ports.length === 0 ? [] : await addressesOf(host);
    const places: readonly (readonly [Way, string])[] = [
      ...server.mediaHosts.slice(0, MAX_ADDRESSES).map((own) => ['own', reachable(own)] as const),
      ...named.map((address) => ['host', address] as const),
    ];
    const trials = places.flatMap(([way, address]) => ports.map((port) => tryOne({ ...port, way, address }, systemClock)));
    return ok(await Promise.all(trials));
  });
}

async function tryOne(
  place: { readonly direction: 'publish' | 'play'; readonly port: number; readonly way: Way; readonly address: string },
  clock: Clock,
): Promise<object> {
  const { address, direction, port, way } = place;
  const ms = await probeSrt({ host: address, port, timeout: TIMEOUT_MS, clock });
  return { address, answered: ms !== null, direction, port, ...(ms !== null && { roundTripMs: Number(ms.toFixed(1)) }), way };
}

/** Throws `ApiError` for an unresolvable name. */
async function addressesOf(host: string): Promise<readonly string[]> {
  const name = host.replace(/^\[(.*)\]$/, '$1');
  const found = await Promise.race([
    lookup(name, { all: true }).catch(() => []),
    new Promise<[]>((resolve) => setTimeout(() => resolve([]), LOOKUP_MS).unref()),
  ]);
  if (found.length === 0) throw new ApiError('MEMBER_INVALID', 'host', 'a name or address that the server can resolve');
  return found.slice(0, MAX_ADDRESSES).map(({ address }) => address);
}

/** The address to test for a port that listens on `host`: loopback for a wildcard. */
function reachable(host: string): string {
  if (host === ALL_IPV4) return '127.0.0.1';
  return host === ALL_IPV6 ? '::1' : host;
}
