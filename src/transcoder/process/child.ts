/** The program of a transcoder process. */
import { availableParallelism } from 'node:os';
import { systemClock } from '../../util/clock.ts';
import { live } from './child-life.ts';
import { TranscoderChild } from './transcoder-child.ts';

live((socket) => new TranscoderChild(socket, { clock: systemClock, cpus: availableParallelism() }));
