/** A virtual host: applications reached under a set of host names. */
import type { Static } from '@sinclair/typebox';
import { AdmissionWebhooksSchema, SignedPolicySchema } from './access.ts';
import { ApplicationSchema } from './application.ts';
import { CrossDomainsSchema } from './cross-domains.ts';
import { as, boolean, finishing, firstDuplicate, integer, list, name, needless, object, optional, text } from './field.ts';
import { OriginMapStoreSchema } from './origin-map-store.ts';
import { TlsSchema } from './tls.ts';

/** `<Names>`: one name in each `<Name>`. */
export const hostNames = list('Host names or addresses; `*` and `?` are wildcards', text('Host name', { form: 'host' }), {
  flatten: 'name',
});

const HostSchema = object('Host names and certificate of the virtual host', {
  names: hostNames,
  tls: optional(as(TlsSchema, 'Certificate for TLS ports', { xml: 'TLS' })),
});
/** The typed form of `<Host>`. A virtual host without it has no host name. */
export type HostConfig = Static<typeof HostSchema>;

interface OriginFinish {
  pass: { scheme: string };
  relay?: boolean;
}

/** `rtspc` is a synonym of `rtsp`. The text of the refusal is the reference server's, which names two. */
const ORIGIN_SCHEMES: readonly string[] = ['ovt', 'ovts', 'rtsp', 'rtspc', 'file'];

const OriginSchema = object(
  'Source of all streams below a location',
  {
    location: text('Prefix of `/<application>/<stream>`; the first matching origin is used', { form: 'location' }),
    pass: object('The source', {
      scheme: text('`ovt`, `rtsp` or `file`; `ovts` is OVT over TLS, an extension of Millrace'),
      urls: object('URLs of the source', {
        url: list(
          'URLs without scheme, `host[:port]/path`; when one fails, the next is tried',
          text('Source, without scheme', { form: 'source' }),
        ),
      }),
      forwardQueryParams: boolean('Adds the query of the viewer to the URL of the source', { default: true }),
    }),
    persistent: boolean('Keeps the streams without viewers, too', { default: false }),
    failback: boolean('Returns to the first source when it works again', { default: false }),
    strictLocation: boolean('The location must match exactly, not as a prefix', { default: false }),
    relay: optional(boolean('Passes the tracks through unchanged; absent: true for `ovt` and `ovts`, else false')),
    ignoreRtcpSRTimestamp: boolean('Starts without waiting for an RTCP sender report', { default: false }),
  },
  {
    finish: finishing<OriginFinish>((value, fail) => {
      const scheme = value.pass.scheme.toLowerCase();
      if (!ORIGIN_SCHEMES.includes(scheme)) fail(`Unknown scheme: ${value.pass.scheme} (expected: ovt, rtsp)`, 'pass');
      value.pass.scheme = scheme;
      value.relay ??= scheme === 'ovt' || scheme === 'ovts';
    }),
  },
);
/** The typed form of `<Origin>`: the scheme is known and in lower case. */
export type OriginConfig = Static<typeof OriginSchema>;

const OriginsSchema = object('Streams that are pulled when a viewer requests them', {
  properties: object(
    'Settings of all origins',
    {
      noInputFailoverTimeout: integer('Time without input after which the next source is tried, ms', { default: 3000, minimum: 0 }),
      unusedStreamDeletionTimeout: integer('Time without viewers after which a stream ends, ms', { default: 60_000, minimum: 0 }),
      streamFailbackTimeout: integer('Interval between probes of the first source, ms', { default: 3000, minimum: 0 }),
      retryCount: integer('Number of rounds through the sources before the stream is given up', { default: 1, minimum: 0 }),
    },
    { default: {} },
  ),
  origin: list('Origins; the first with a matching location is used', OriginSchema, { default: [] }),
});
/** The typed form of `<Origins>`; the first origin whose location matches is taken. */
export type OriginsConfig = Static<typeof OriginsSchema>;

/** `<VirtualHost>`, also the body of the API's routes for virtual hosts. Application names are unique in it. */
export const VirtualHostSchema = object(
  'A virtual host',
  {
    name: name('Name of the virtual host, unique'),
    distribution: text('Label that groups the same virtual host over several servers', {
      default: 'ovenmediaengine.com',
      idle: { why: 'it only names the virtual host', label: true },
    }),
    host: optional(HostSchema),
    signedPolicy: optional(SignedPolicySchema),
    admissionWebhooks: optional(AdmissionWebhooksSchema),
    origins: optional(OriginsSchema),
    originMapStore: optional(OriginMapStoreSchema),
    crossDomains: optional(
      as(CrossDomainsSchema, 'Has no effect', {
        deprecated: 'Defaults/CrossDomains or CrossDomains of a publisher',
        ...needless('Defaults/CrossDomains and CrossDomains of publishers are used'),
      }),
    ),
    applications: list('Applications', ApplicationSchema, { flatten: 'application', default: [] }),
  },
  {
    finish: finishing<{ applications: { name: string }[] }>((value, fail) => {
      const name = firstDuplicate(value.applications);
      if (name !== undefined) fail(`Duplicate application name: ${name}`, 'applications');
    }),
  },
);
/** The typed form of `<VirtualHost>`, with defaults filled in. */
export type VirtualHostConfig = Static<typeof VirtualHostSchema>;
