/** Access control of a virtual host: signed URLs and admission webhooks. */
import type { Static } from '@sinclair/typebox';
import { type Fail, finishing, integer, object, text, words } from './field.ts';

/** Providers that can be protected: their clients name a URL of their own. */
const PROVIDERS: readonly string[] = ['rtmp', 'srt', 'webrtc'];
const PUBLISHERS: readonly string[] = ['webrtc', 'llhls', 'hls', 'thumbnail', 'srt'];
/** Synonyms of publishers. */
const SAME: Readonly<Record<string, string>> = { hlsv3: 'hls' };
/** Publishers of earlier versions of the reference: nothing is served by them, so nothing stays open. */
const GONE: readonly string[] = ['dash', 'lldash'];
/** Names that cannot be protected and must not seem protected, with the reason. */
const OPEN_WAYS: Readonly<Record<string, string>> = {
  ovt: 'OVT carries no signed URL: let its port be reached by edges only',
  mpegts: 'MPEG-TS has no URL: let its port be reached by encoders only',
  rtsp: 'streams of RTSP are pulled by the server itself',
  rtsppull: 'streams of RTSP are pulled by the server itself',
  rtspc: 'streams of RTSP are pulled by the server itself',
  file: 'files are played by the server itself',
  push: 'pushes are begun through the API only',
};

function checked(names: readonly string[], key: string, known: readonly string[], fail: Fail): string[] {
  const meant = names.map((name) => SAME[name] ?? name).filter((name) => key === 'providers' || !GONE.includes(name));
  for (const name of meant) {
    const why = OPEN_WAYS[name];
    if (known.includes(name)) continue;
    if (why === undefined) fail(`enables.${key}: unknown name '${name}' (expected: ${known.join(', ')})`, key);
    else fail(`enables.${key}: '${name}' cannot be protected: ${why} (expected: ${known.join(', ')})`, key);
  }
  return [...new Set(meant)];
}

const EnablesSchema = object(
  'Providers and publishers to which it applies',
  {
    providers: words('Providers, separated by commas: `rtmp`, `srt`, `webrtc`', { default: [] }),
    publishers: words('Publishers, separated by commas: `webrtc`, `llhls`, `hls`, `thumbnail`, `srt`', { default: [] }),
  },
  {
    default: {},
    finish: finishing<{ providers: string[]; publishers: string[] }>((value, fail) => {
      value.providers = checked(value.providers, 'providers', PROVIDERS, fail);
      value.publishers = checked(value.publishers, 'publishers', PUBLISHERS, fail);
    }),
  },
);

interface PolicyFinish {
  readonly policyQueryKeyName: string;
  readonly signatureQueryKeyName: string;
  readonly secretKey: string;
}

/** Allowed keys in a query. Some parameters are the server's. */
const QUERY_KEY = /^[\w.~-]+$/;
const OWN_KEYS: readonly string[] = ['session', 'direction', 'transport', 'format', 'stream_key'];

/** `<SignedPolicy>`. */
export const SignedPolicySchema = object(
  'Requires signed URLs',
  {
    policyQueryKeyName: text('Query key of the policy'),
    signatureQueryKeyName: text('Query key of the signature'),
    secretKey: text('Key of the signatures; must not be empty'),
    enables: EnablesSchema,
  },
  {
    finish: finishing<PolicyFinish>((value, fail) => {
      for (const key of ['policyQueryKeyName', 'signatureQueryKeyName'] as const) {
        if (!QUERY_KEY.test(value[key])) fail(`signedPolicy.${key} must be letters, digits and _ . ~ -, but got '${value[key]}'`, key);
        else if (OWN_KEYS.includes(value[key].toLowerCase()))
          fail(`signedPolicy.${key} must not be '${value[key]}', which means something else in a URL`, key);
      }
      if (value.policyQueryKeyName.toLowerCase() === value.signatureQueryKeyName.toLowerCase())
        fail('signedPolicy.signatureQueryKeyName must not be policyQueryKeyName', 'signatureQueryKeyName');
      // Any client could sign.
      if (value.secretKey === '') fail('signedPolicy.secretKey must not be empty', 'secretKey');
    }),
  },
);
/** The typed form of `<SignedPolicy>`: usable keys, a secret, and known words in lower case. */
export type SignedPolicyConfig = Static<typeof SignedPolicySchema>;

interface WebhooksFinish {
  readonly controlServerUrl: string;
  readonly enables: { readonly providers: readonly string[]; readonly publishers: readonly string[] };
}

/** Players and encoders give up after this time. */
export const MAX_WEBHOOK_TIMEOUT_MS = 10_000;

/** `<AdmissionWebhooks>`. */
export const AdmissionWebhooksSchema = object(
  'A control server admits or refuses each client',
  {
    controlServerUrl: text('URL of the control server', { form: 'url' }),
    secretKey: text('Key that signs the requests; may be empty', { default: '' }),
    timeout: integer('Time limit for an answer, ms; without an answer the client is refused', {
      default: 3000,
      minimum: 1,
      maximum: MAX_WEBHOOK_TIMEOUT_MS,
    }),
    enables: EnablesSchema,
  },
  {
    finish: finishing<WebhooksFinish>(({ controlServerUrl: url, enables: { providers, publishers } }, fail) => {
      const isAsked = providers.length + publishers.length > 0;
      // No client would be admitted.
      if (isAsked && !(/^https?:\/\//i.test(url) && URL.canParse(url)))
        fail(`admissionWebhooks.controlServerUrl must be a URL that begins with http:// or https://, but got '${url}'`, 'controlServerUrl');
    }),
  },
);
/** The typed form of `<AdmissionWebhooks>`: a URL of HTTP, and known words in lower case; `timeout` in ms. */
export type AdmissionWebhooksConfig = Static<typeof AdmissionWebhooksSchema>;
