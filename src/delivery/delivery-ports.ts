/** The ports for everything served over HTTP. */
import type { ServerConfig } from '../config/index.ts';
import { deliveryPorts } from '../config/server-config.ts';
import type { PortOpenings } from '../core/port-openings.ts';
import type { Conditions } from '../util/conditions.ts';
import type { Logger } from '../util/logger.ts';
import type { DeliveryPool } from './pool/delivery-pool.ts';
import type { CertificateStore } from './tls/certificate-store.ts';
import { openWithCertificate } from './tls/open-listener.ts';

/**
 * Opens the ports; TLS ports with the first certificate. Rejects if one cannot be opened for a reason that `openings` does not collect.
 */
export async function openDeliveryPorts(
  config: ServerConfig,
  parts: {
    readonly delivery: DeliveryPool;
    readonly openings: PortOpenings;
    readonly certificates: CertificateStore;
    readonly conditions: Conditions;
    readonly logger: Logger;
  },
): Promise<void> {
  const { delivery, openings, logger } = parts;
  for (const { element, ...port } of deliveryPorts(config)) {
    const open = async (): Promise<void> => {
      const opened = await openings.open(`HTTP port ${port.port} (${element})`, () => delivery.listen(port));
      if (opened !== null) logger.info({ part: 'delivery', ...port }, 'HTTP listening for viewers');
    };
    await (port.tls ? openWithCertificate(`TLS port ${port.port}`, open, parts) : open());
  }
}
