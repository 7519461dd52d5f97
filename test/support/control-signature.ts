/** What a control server compares `X-OME-Signature` with. */
import { createHmac } from 'node:crypto';

export function controlSignature(secretKey: string, body: string): string {
  return createHmac('sha1', secretKey).update(body).digest('base64url');
}
