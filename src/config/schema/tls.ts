/** Certificate files of a host. */
import type { Static } from '@sinclair/typebox';
import { object, optional, path } from './field.ts';

export const TlsSchema = object('Certificate for TLS ports', {
  certPath: path('Certificate file, PEM'),
  keyPath: path('Private key file, PEM'),
  chainCertPath: optional(path('Intermediate certificates file, PEM')),
});
export type TlsConfig = Static<typeof TlsSchema>;
