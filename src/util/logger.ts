/** The part of pino that a program hands to the server; fields are for machines, the message is for people. */
export interface LogLines {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** A log that adds `fields` to every line. */
  child(fields: object): LogLines;
}

/** The log, as the parts of the server see it. */
export interface Logger extends LogLines {
  /** A logger that adds `fields` to every line. */
  child(fields: object): Logger;
  /**
   * The same logger for lines that outside clients can cause at any rate. The number of lines per minute is limited for each kind
   * (`MAX_LINES_PER_MINUTE`), and the rest is counted. The kind is the text before the first colon, digit or quotation mark. All loggers of
   * a server share the limits.
   */
  readonly limited: Logger;
}
