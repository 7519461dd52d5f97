/** The encodes of one inbound stream inside a transcoder process. */
import type { EncodeVideoConfig } from '../../config/index.ts';
import { type ChildQueue, encodeRequests, type OpenMessage, type SourceMessage } from '../messages.ts';
import type { AudioEncode } from './audio-output.ts';
import { AudioPipeline } from './audio-pipeline.ts';
import type { FrameEncode } from './frame-output.ts';
import { imageEncode } from './image-encode.ts';
import type { InputPacket, Pipeline, PipelineTools } from './pipeline.ts';
import { followsSource, videoEncode } from './video-encode.ts';
import { VideoPipeline } from './video-pipeline.ts';

export class ChildJob {
  readonly #id: number;
  readonly #pipelines = new Map<number, Pipeline>();
  readonly #byEncode = new Map<number, Pipeline>();

  constructor(id: number, { bypassedSources, ...message }: OpenMessage, tools: PipelineTools) {
    this.#id = id;
    const encodes = encodeRequests(message);
    for (const sourceId of new Set(encodes.map((encode) => encode.sourceId))) {
      const mine = encodes.filter((encode) => encode.sourceId === sourceId);
      const audios: AudioEncode[] = [];
      const frameEncodes: FrameEncode[] = [];
      const videos = mine.flatMap((request): EncodeVideoConfig[] => (request.type === 'video' ? [request.encode] : []));
      const followSource = bypassedSources.includes(sourceId) || followsSource(videos);
      for (const request of mine) {
        if (request.type === 'audio') audios.push(request);
        else if (request.type === 'video') frameEncodes.push(videoEncode(request, followSource, tools));
        else frameEncodes.push(imageEncode(request, tools));
      }
      const pipeline = audios.length > 0 ? new AudioPipeline(sourceId, audios, tools) : new VideoPipeline(sourceId, frameEncodes, tools);
      this.#pipelines.set(sourceId, pipeline);
      for (const { id: encodeId } of mine) this.#byEncode.set(encodeId, pipeline);
    }
  }

  setSource(sourceId: number, source: SourceMessage): void {
    this.#pipelines.get(sourceId)?.push({ source });
  }

  push(sourceId: number, packet: InputPacket): void {
    this.#pipelines.get(sourceId)?.push({ packet });
  }

  requestKeyframe(encodeId: number, pts: number): void {
    this.#byEncode.get(encodeId)?.requestKeyframe(encodeId, pts);
  }

  queueFigures(): ChildQueue[] {
    return [...this.#pipelines.values()].flatMap(({ queues }) =>
      queues.map(({ queue }) => {
        const { urn, id: _id, ...figures } = queue.status();
        return { job: this.#id, role: urn, ...figures };
      }),
    );
  }

  /** Resolves when no operation of the job is running. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#pipelines.values(), (pipeline) => pipeline.close()));
  }
}
