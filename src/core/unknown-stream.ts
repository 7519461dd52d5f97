/** A stream of which it is unknown at present whether another server has it. */

/** Whether a stream is there by now; `unknown`: the origin map does not answer. */
export type StreamPresence = boolean | 'unknown';

/** The error for viewers, over every protocol. */
export const UNKNOWN_STREAM = 'it cannot be told whether another server has the stream: the origin map does not answer';
