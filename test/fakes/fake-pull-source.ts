/** A pull source without a network: it plays some URLs and refuses others. */
import type { ProviderKind, SourceType } from '../../src/core/kinds.ts';
import type { PullSession, PullSource, PullTarget } from '../../src/core/pull.ts';
import type { PullDocument, PullStore } from '../../src/core/pull-registry.ts';
import { audioTrack, videoPacket, videoTrack } from './source.ts';

export interface OpenedPull {
  readonly target: PullTarget;
  closed: boolean;
}

export class FakePullSource implements PullSource {
  readonly schemes: readonly string[];
  readonly provider: ProviderKind;
  readonly sourceType: SourceType;
  /** Requested URLs, in order. */
  readonly asked: string[] = [];
  readonly opened: OpenedPull[] = [];
  /** Whether a URL plays. */
  plays: (url: string) => boolean;

  constructor(options: Pick<PullSource, 'schemes' | 'provider' | 'sourceType'> & { plays: (url: string) => boolean }) {
    this.schemes = options.schemes;
    this.provider = options.provider;
    this.sourceType = options.sourceType;
    this.plays = options.plays;
  }

  async open(target: PullTarget): Promise<PullSession> {
    this.asked.push(target.url);
    await new Promise((resolve) => setImmediate(resolve));
    if (!this.plays(target.url)) throw new Error('refused by the test');
    const opened: OpenedPull = { target, closed: false };
    this.opened.push(opened);
    target.sink.setTracks([videoTrack(), audioTrack()]);
    return {
      close: () => {
        opened.closed = true;
      },
    };
  }

  /** Delivers `count` frames over the newest connection. */
  deliver(count = 30): void {
    for (let index = 0; index < count; index += 1) this.opened.at(-1)?.target.sink.push(videoPacket(index));
  }
}

/** Keeps persistent pulls in memory; the test can make it refuse. */
export class MemoryPullStore implements PullStore {
  readonly documents = new Map<string, PullDocument>();
  full = false;

  async save(document: PullDocument): Promise<void> {
    if (this.full) throw new Error('no space left on device');
    this.documents.set(document.name, document);
  }

  async remove({ name }: Pick<PullDocument, 'name'>): Promise<void> {
    if (this.full) throw new Error('no space left on device');
    this.documents.delete(name);
  }
}
