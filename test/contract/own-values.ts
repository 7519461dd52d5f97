/** Recorded answers with values that are a server's own. Only the shape of these answers is compared. */

/** Numbers of the exchanges by what differs. */
export const OWN_VALUES: Readonly<Record<string, readonly number[]>> = {
  'names in an order of its own, or that an earlier difference made or left': [104, 143, 193, 217, 268, 697, 748],
  'times of a recording, its paths, and its bytes': [
    ...[361, 362, 363, 453, 454, 455, 464, 465, 469, 470, 471, 472, 473],
    ...[475, 478, 484, 485, 488, 489, 490, 491, 492],
  ],
  'times of a push, and its bytes': [365, 366, 495, 496, 497, 511, 512, 513, 514, 515, 516, 517, 518, 520],
  'when a stream began, the address of its source, and measured rates': [499, 604, 607, 685, 730],
  'times and measured rates of statistics': [605, 620, 725, 731],
  'ids, waiting times and rates of queues': [727],
  'how far a channel has played': [647, 659],
};
