import { acknowledge } from '../envelope.ts';
import { ApiError } from '../errors.ts';
import { changed } from '../refusals.ts';
import type { Route } from '../route.ts';

const RELOAD_FAILED = { failed: () => new ApiError('CERTIFICATE_RELOAD_FAILED') };

/** Loads certificate files again. Request bodies are ignored; on failure the certificates in use stay. */
export const certificateRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/vhosts:reloadAllCertificates',
    level: 'server',
    summary: 'Reload the certificates of all virtual hosts',
    changes: true,
    handle: async ({ control }) => {
      await changed(control.reloadCertificates(), RELOAD_FAILED);
      return acknowledge();
    },
  },
  {
    method: 'POST',
    path: '/v1/vhosts/{vhost}:reloadCertificate',
    level: 'vhost',
    summary: 'Reload the certificate of a virtual host',
    changes: true,
    handle: async ({ control, vhost }) => {
      await changed(control.reloadCertificates(vhost.name), RELOAD_FAILED);
      return acknowledge();
    },
  },
  {
    method: 'POST',
    path: '/v1/managers/api:reloadCertificate',
    level: 'server',
    summary: 'Reload the certificate of the API server',
    changes: true,
    handle: async ({ server }) => {
      if (server.reloadCertificate === null) throw new ApiError('API_TLS_DISABLED');
      await changed(server.reloadCertificate(), { failed: () => new ApiError('API_CERTIFICATE_FAILED') });
      return acknowledge();
    },
  },
];
