/** A link that carries the payloads of a transport stream to a receiver. */
import type { PushFailure } from './push-failure.ts';

/** Its maker closes it. Events (`LinkEvents`) are called until it has failed or was closed. */
export interface PayloadLink {
  /** False while earlier payloads wait. */
  readonly writable: boolean;
  /** Payloads dropped because the receiver was too slow. */
  readonly dropped: number;
  /** Sends a payload, which must not change; false if it was dropped. */
  send(payload: Uint8Array): boolean;
  /** The payloads that follow begin with tables and a keyframe. */
  onEntryPoint(): void;
  /** Sends gathered payloads. */
  flush(): void;
  /** Ends the connection and reports the failure. */
  fail(failure: PushFailure): void;
  /** Takes leave after the waiting payloads; resolves when the connection is gone. Idempotent. */
  close(): Promise<void>;
}

/** Events of a link; nothing comes after `onFailed` or `close`. */
export interface LinkEvents {
  readonly onOpen: () => void;
  readonly onWritable: () => void;
  readonly onFailed: (failure: PushFailure) => void;
}
