/** Why a connection failed or cannot be made: `code` for machines, the message for people. */
export class PushFailure extends Error {
  override readonly name = 'PushFailure';
  readonly code: 'unsuitable' | 'unreachable' | 'refused' | 'timeout' | 'stalled' | 'lost' | 'protocol' | 'internal';

  constructor(code: PushFailure['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
