/** Protection profiles by their DTLS-SRTP numbers (RFC 5764 section 4.1.2, RFC 7714 section 14.2). */
export const SrtpProfile = {
  AES128_CM_SHA1_80: 1,
  AEAD_AES_128_GCM: 7,
} as const;
/** Any value of `SrtpProfile`. */
export type SrtpProfile = (typeof SrtpProfile)[keyof typeof SrtpProfile];

/** Bytes of the master key, for both profiles. */
export const MASTER_KEY_LENGTH = 16;

/** Bytes of the master salt. */
export function saltLength(profile: SrtpProfile): number {
  return profile === SrtpProfile.AEAD_AES_128_GCM ? 12 : 14;
}

/** Keys agreed by a DTLS handshake, from our side. */
export interface SrtpKeys {
  readonly profile: SrtpProfile;
  readonly localKey: Uint8Array;
  readonly localSalt: Uint8Array;
  readonly remoteKey: Uint8Array;
  readonly remoteSalt: Uint8Array;
}

/** Erases keys that were handed over, so that none stay in memory. */
export function wipeKeys({ localKey, localSalt, remoteKey, remoteSalt }: SrtpKeys): void {
  for (const secret of [localKey, localSalt, remoteKey, remoteSalt]) secret.fill(0);
}
