/** Why a change of the server's resources was refused; the API makes HTTP statuses of the codes. */
export class ControlError extends Error {
  override readonly name = 'ControlError';
  readonly code: 'vhost-exists' | 'vhost-missing' | 'vhost-read-only' | 'app-exists' | 'app-missing' | 'not-durable';
  constructor(code: ControlError['code'], message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}
