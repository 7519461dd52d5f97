/** The program of a process that reads a media file, which it has as its standard input. */
import { availableParallelism } from 'node:os';
import { systemClock } from '../../util/clock.ts';
import { live } from './child-life.ts';
import { FileReader } from './file-reader.ts';

live((socket) => new FileReader(socket, { clock: systemClock, cpus: availableParallelism() }));
