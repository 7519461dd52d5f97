/** Reads the requests in a caller's conclusion handshake and refuses those that this implementation does not support. */
import {
  ExtensionType,
  HANDSHAKE_V5,
  type Handshake,
  parseCapabilities,
  parseTextExtension,
  type SrtCapabilities,
  SrtFlag,
} from './handshake.ts';
import { RejectionCode } from './rejection.ts';
import { MIN_VERSION } from './terms.ts';

/** A well-formed request of a caller that this implementation can fulfil. */
export interface Conclusion {
  readonly capabilities: SrtCapabilities;
  readonly streamId: string;
  /** Null: the caller does not encrypt. */
  readonly keyMaterial: Uint8Array | null;
}

const LIVE = 'live';

/** The request, or the code of its refusal. Throws `ProtocolError` for malformed extensions. */
export function readConclusion(handshake: Handshake): Conclusion | RejectionCode {
  const content = (type: number): Uint8Array | undefined => handshake.extensions.find((extension) => extension.type === type)?.content;
  const request = content(ExtensionType.HANDSHAKE_REQUEST);
  if (handshake.version !== HANDSHAKE_V5 || request === undefined) return RejectionCode.VERSION;
  const capabilities = parseCapabilities(request);
  if (capabilities.version < MIN_VERSION) return RejectionCode.VERSION;
  if ((capabilities.flags & SrtFlag.STREAM_MODE) !== 0) return RejectionCode.MESSAGE_API;
  const congestion = content(ExtensionType.CONGESTION);
  if (congestion !== undefined && parseTextExtension(congestion) !== LIVE) return RejectionCode.CONGESTION;
  if (content(ExtensionType.FILTER) !== undefined) return RejectionCode.FILTER;
  if (content(ExtensionType.GROUP) !== undefined) return RejectionCode.GROUP;
  const streamId = content(ExtensionType.STREAM_ID);
  return {
    capabilities,
    streamId: streamId === undefined ? '' : parseTextExtension(streamId),
    keyMaterial: content(ExtensionType.KEY_REQUEST) ?? null,
  };
}
