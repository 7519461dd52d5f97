/** The process that reads a file, on a machine with as many cores as there are. */
import { live } from '../../src/transcoder/process/child-life.ts';
import { FileReader } from '../../src/transcoder/process/file-reader.ts';
import { systemClock } from '../../src/util/clock.ts';

live((socket) => new FileReader(socket, { clock: systemClock, cpus: 64 }));
