import { acknowledge } from '../envelope.ts';
import { ApiError, causedBy, type ErrorCode } from '../errors.ts';
import type { Route } from '../route.ts';

/** Loads certificate files again. Request bodies are ignored; on failure the certificates in use stay. */
export const certificateRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/vhosts:reloadAllCertificates',
    level: 'server',
    summary: 'Reload the certificates of all virtual hosts',
    handle: async ({ control }) => {
      await reload(control.reloadCertificates(control.virtualHosts), 'CERTIFICATE_RELOAD_FAILED');
      return acknowledge();
    },
  },
  {
    method: 'POST',
    path: '/v1/vhosts/{vhost}:reloadCertificate',
    level: 'vhost',
    summary: 'Reload the certificate of a virtual host',
    handle: async ({ control, vhost }) => {
      await reload(control.reloadCertificates([vhost]), 'CERTIFICATE_RELOAD_FAILED');
      return acknowledge();
    },
  },
  {
    method: 'POST',
    path: '/v1/managers/api:reloadCertificate',
    level: 'server',
    summary: 'Reload the certificate of the API server',
    handle: async ({ server }) => {
      if (server.reloadCertificate === null) throw new ApiError('API_TLS_DISABLED');
      await reload(server.reloadCertificate(), 'API_CERTIFICATE_FAILED');
      return acknowledge();
    },
  },
];

async function reload(reloading: Promise<void>, failed: ErrorCode): Promise<void> {
  try {
    await reloading;
  } catch (error) {
    throw causedBy(new ApiError(failed), error);
  }
}
