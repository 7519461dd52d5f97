/** Holds what the console reads of answers to what the API's document promises: a member that is renamed there does not compile here. Not part of the build. */
import type { components } from '../client/openapi-types.ts';
import type { ScheduledChannel } from './channel-timeline.ts';
import type { MultiplexChannel } from './channels-page.ts';
import type { CodecModule } from './configuration-page.ts';
import type { LiveEvent } from './live-events.ts';
import type { HealthAnswer } from './sampler.ts';
import type { Statistics, StreamInformation } from './server-facts.ts';
import type { SessionStatistics } from './session-table.ts';
import type { Dump, PushTask, RecordTask } from './task-panel.ts';

type Promised = components['schemas'];
type Fits<_Promise extends Read, Read> = true;

/** Each pair is an answer with what is read of it. */
export type Answers = [
  Fits<Promised['StatisticsV1'], Statistics>,
  Fits<Promised['StreamInformation'], StreamInformation>,
  Fits<Promised['SessionStatistics'], SessionStatistics>,
  Fits<Promised['RecordTask'], RecordTask>,
  Fits<Promised['PushTask'], PushTask>,
  Fits<Promised['Dump'], Dump>,
  Fits<Promised['ScheduledChannel'], ScheduledChannel>,
  Fits<Promised['MultiplexChannel'], MultiplexChannel>,
  Fits<Promised['CodecModule'], CodecModule>,
  Fits<Promised['Health'], HealthAnswer>,
  Fits<Promised['LiveEvent'], LiveEvent>,
];
