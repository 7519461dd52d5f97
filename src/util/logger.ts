/** The part of pino that the server uses; fields are for machines, the message is for people. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** A logger that adds `fields` to every line. */
  child(fields: object): Logger;
}
