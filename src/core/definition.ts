/** A JSON object as clients send it and get it back. */
export type JsonObject = { readonly [key: string]: unknown };

/** How a resource was declared. */
export interface Definition<Config> {
  readonly name: string;
  /** The effective configuration: with defaults filled in and macros expanded. */
  readonly config: Config;
  /** The definition as it was given: the API answers it and the state folder keeps it. */
  readonly echo: JsonObject;
}

/** Why a change of the server's resources was refused; the API makes HTTP statuses of the codes. */
export class ControlError extends Error {
  override readonly name = 'ControlError';
  readonly code: 'vhost-exists' | 'vhost-missing' | 'vhost-read-only' | 'app-exists' | 'app-missing' | 'not-durable';
  constructor(code: ControlError['code'], message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}
