/** The process that reads a file, as on a machine with 64 cores. */
import { live } from '../../src/transcoder/process/child-life.ts';
import { FileReader } from '../../src/transcoder/process/file-reader.ts';
import { systemClock } from '../../src/util/clock.ts';

live((socket) => new FileReader(socket, { clock: systemClock, cpus: 64 }));
