/** A JSON object as clients send it and get it back. */
export type JsonObject = { readonly [key: string]: unknown };

/** How a resource was declared. */
export interface Definition<Config> {
  readonly name: string;
  /** With defaults filled in and macros expanded: what the server runs on. */
  readonly config: Config;
  /** What was given, as it was given: what the API answers and the state keeps. */
  readonly echo: JsonObject;
}
