/** A recording task as the API shows it. */
import { formatTimestamp } from '../../util/timestamp.ts';
import { RecordState, type RecordTask } from './record-task.ts';

/** States with figures of the current file. */
const WITH_FIGURES: ReadonlySet<RecordState> = new Set([
  RecordState.RECORDING,
  RecordState.STOPPING,
  RecordState.STOPPED,
  RecordState.ERROR,
]);

/** Members as in the API. Times are text, undefined members are not shown. */
export interface RecordInformation {
  readonly app: string;
  readonly createdTime: string;
  readonly filePath?: string;
  readonly finishTime?: string;
  readonly id: string;
  readonly infoPath?: string;
  readonly interval?: number;
  readonly isConfig: boolean;
  readonly metadata?: string;
  readonly outputFilePath?: string;
  readonly outputInfoPath?: string;
  readonly reason?: string;
  readonly recordBytes?: number;
  readonly recordTime?: number;
  readonly schedule?: string;
  readonly segmentationRule: string;
  readonly sequence?: number;
  readonly startTime?: string;
  readonly state: RecordState;
  readonly stream: { readonly name: string; readonly trackIds: readonly number[]; readonly variantNames: readonly string[] };
  readonly totalRecordBytes?: number;
  readonly totalRecordTime?: number;
  readonly vhost: string;
}

/** The task as it is now. */
export function recordInformation(task: RecordTask): RecordInformation {
  const { request, state, reason } = task;
  return {
    app: task.app,
    createdTime: formatTimestamp(task.createdAt),
    ...given('filePath', request.filePath),
    id: request.id,
    ...given('infoPath', request.infoPath),
    ...positive('interval', request.interval),
    isConfig: request.isConfig,
    ...given('metadata', request.metadata),
    ...given('outputFilePath', task.outputFilePath ?? ''),
    ...given('outputInfoPath', task.outputInfoPath ?? ''),
    ...given('reason', state === RecordState.ERROR ? (reason ?? '') : ''),
    ...given('schedule', request.schedule),
    segmentationRule: request.segmentationRule,
    ...(WITH_FIGURES.has(state) && figuresOf(task)),
    state,
    stream: { name: request.streamName, trackIds: request.trackIds, variantNames: request.variantNames },
    vhost: task.vhost,
  };
}

function figuresOf(task: RecordTask): Partial<RecordInformation> {
  const { startTime, finishTime, state } = task;
  const hasEnded = state === RecordState.STOPPED || state === RecordState.ERROR;
  return {
    ...positive('recordBytes', task.recordBytes),
    ...positive('recordTime', task.recordTime),
    ...positive('sequence', task.totals.sequence),
    ...positive('totalRecordBytes', task.totalRecordBytes),
    ...positive('totalRecordTime', task.totalRecordTime),
    ...(startTime !== null && { startTime: formatTimestamp(startTime) }),
    ...(hasEnded && finishTime !== null && { finishTime: formatTimestamp(finishTime) }),
  };
}

function given<K extends string>(name: K, text: string): { readonly [key in K]?: string } {
  return text === '' ? {} : ({ [name]: text } as { [key in K]: string });
}

function positive<K extends string>(name: K, value: number): { readonly [key in K]?: number } {
  return value > 0 ? ({ [name]: value } as { [key in K]: number }) : {};
}
