/** Makes a self-signed certificate for tests: just enough X.509 (RFC 5280) for a TLS client. */
import { generateKeyPairSync, sign } from 'node:crypto';

const SEQUENCE = 0x30;
const SET = 0x31;
const ECDSA_WITH_SHA256 = Buffer.from('06082a8648ce3d040302', 'hex');
const COMMON_NAME = Buffer.from('0603550403', 'hex');
const SUBJECT_ALT_NAME = Buffer.from('0603551d11', 'hex');
const BASIC_CONSTRAINTS = Buffer.from('0603551d13', 'hex');
const IS_AUTHORITY = Buffer.from('30030101ff', 'hex');

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  if (body.length < 0x80) return Buffer.concat([Buffer.from([tag, body.length]), body]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length);
  const significant = length.subarray(length.findIndex((byte) => byte !== 0));
  return Buffer.concat([Buffer.from([tag, 0x80 | significant.length]), significant, body]);
}

function name(text: string): Buffer {
  return der(SEQUENCE, der(SET, der(SEQUENCE, COMMON_NAME, der(0x0c, Buffer.from(text)))));
}

/** A certificate with its key, both PEM. */
export interface Issued {
  readonly cert: string;
  readonly key: string;
}

/** PEM texts of a certificate for `host` and its key. */
export function selfSigned(host: string): Issued {
  return issue(host, null);
}

/** A certificate for `host` with a chain: clients trust `root`, and the server must send `intermediate`. */
export function chained(host: string): Issued & { readonly intermediate: string; readonly root: string } {
  const root = issue('root', null, true);
  const intermediate = issue('intermediate', { ...root, name: 'root' }, true);
  const leaf = issue(host, { ...intermediate, name: 'intermediate' });
  return { ...leaf, intermediate: intermediate.cert, root: root.cert };
}

let lastSerial = 0;

/** `issuer` null: signed with its own key. */
function issue(host: string, issuer: (Issued & { readonly name: string }) | null, isAuthority = false): Issued {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = der(SEQUENCE, ECDSA_WITH_SHA256);
  const validity = der(SEQUENCE, der(0x17, Buffer.from('200101000000Z')), der(0x17, Buffer.from('491231235959Z')));
  const altNames = der(SEQUENCE, der(0x82, Buffer.from(host)));
  lastSerial += 1;
  const body = der(
    SEQUENCE,
    der(0xa0, Buffer.from('020102', 'hex')),
    der(0x02, Buffer.from([1 + (lastSerial >> 8), lastSerial & 0xff])),
    algorithm,
    name(issuer?.name ?? host),
    validity,
    name(host),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(
      0xa3,
      der(
        SEQUENCE,
        der(SEQUENCE, SUBJECT_ALT_NAME, der(0x04, altNames)),
        ...(isAuthority ? [der(SEQUENCE, BASIC_CONSTRAINTS, der(0x04, IS_AUTHORITY))] : []),
      ),
    ),
  );
  const signature = sign('sha256', body, issuer?.key ?? privateKey);
  const certificate = der(SEQUENCE, body, algorithm, der(0x03, Buffer.from([0]), signature));
  const base64 = certificate.toString('base64').replace(/.{64}/g, '$&\n');
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}
