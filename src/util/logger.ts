/** The part of pino that a program hands to the server; fields are for machines, the message is for people. */
export interface LogLines {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** One that adds `fields` to every line. */
  child(fields: object): LogLines;
}

/** The log, as the parts of the server see it. */
export interface Logger extends LogLines {
  /** A logger that adds `fields` to every line. */
  child(fields: object): Logger;
  /**
   * This logger for lines that somebody outside can cause as often as they like: of each kind some go out in a minute
   * (`MAX_LINES_PER_MINUTE`), the others become a number. A kind is what comes before the first colon, digit or quotation mark of the
   * message. All loggers of a server share the numbers.
   */
  readonly limited: Logger;
}
