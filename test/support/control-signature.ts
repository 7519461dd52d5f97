/** The signature that a control server compares with `X-OME-Signature`. */
import { createHmac } from 'node:crypto';

export function controlSignature(secretKey: string, body: string): string {
  return createHmac('sha1', secretKey).update(body).digest('base64url');
}
