/** Certificate files of a host. */
import type { Static } from '@sinclair/typebox';
import { object, optional, path } from './field.ts';

/** `<TLS>`. Paths are relative to the file that contains them; the files are read when ports open, not here. */
export const TlsSchema = object('Certificate for TLS ports', {
  certPath: path('Certificate file, PEM'),
  keyPath: path('Private key file, PEM'),
  chainCertPath: optional(path('Intermediate certificates file, PEM')),
});
/** The typed form of `<TLS>`: paths, absolute where they came from a file. */
export type TlsConfig = Static<typeof TlsSchema>;
