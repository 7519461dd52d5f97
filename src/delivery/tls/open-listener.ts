/** TLS ports open when there is a certificate. */

import type { Conditions } from '../../util/conditions.ts';
import type { Logger } from '../../util/logger.ts';
import type { CertificateStore } from './certificate-store.ts';

/** Opens a TLS port: now, or with the first certificate, which may come through the API; until then `conditions` records that. */
export async function openWithCertificate(
  what: string,
  open: () => Promise<void>,
  {
    certificates,
    conditions,
    logger,
  }: { readonly certificates: CertificateStore; readonly conditions: Conditions; readonly logger: Logger },
): Promise<void> {
  if (certificates.available) return open();
  const reason = `${what} stays closed until a virtual host has a certificate (Host/TLS)`;
  logger.warn({}, reason);
  conditions.raise(what, reason);
  let waits = true;
  certificates.addFollower((all) => {
    if (!waits || all.length === 0) return;
    waits = false;
    open().then(
      () => conditions.clear(what),
      (error: unknown) => {
        logger.error({ err: error }, String(error));
        conditions.raise(what, `${what} could not be opened`);
      },
    );
  });
}
