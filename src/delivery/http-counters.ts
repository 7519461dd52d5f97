/** Counters of connections; monitoring reads the fields. */
export interface HttpCounters {
  opened: number;
  closed: number;
  requests: number;
  /** Requests refused because they violate HTTP or a limit. */
  faults: number;
  /** Connections closed because the client took too long. */
  timeouts: number;
  /** Connections closed before the answer was sent completely. */
  aborts: number;
  /** Connections refused because there were too many. */
  refused: number;
  /** Requests refused because too many waited, or because there was no memory for a file. */
  overloads: number;
  bytesSent: number;
  /** Answers by first digit of the status: index 1 to 5. */
  readonly statuses: number[];
}

/** Counters at 0; listeners of one thread share them. */
export function newHttpCounters(): HttpCounters {
  return {
    opened: 0,
    closed: 0,
    requests: 0,
    faults: 0,
    timeouts: 0,
    aborts: 0,
    refused: 0,
    overloads: 0,
    bytesSent: 0,
    statuses: [0, 0, 0, 0, 0, 0],
  };
}
