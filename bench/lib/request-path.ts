/** The work of a delivery thread for a request, without sockets or other threads, for micro benches. */
import { AccessControls } from '../../src/access/access-controls.ts';
import { Admission, OPEN_ADMISSION } from '../../src/delivery/admission.ts';
import { HostTable } from '../../src/delivery/host-table.ts';
import type { AnswerSink } from '../../src/delivery/http/answer-sink.ts';
import { newHttpCounters } from '../../src/delivery/http-counters.ts';
import { DEFAULT_DELIVERY_LIMITS as LIMITS } from '../../src/delivery/pool/delivery-limits.ts';
import { SessionTokens } from '../../src/delivery/session-token.ts';
import { BlockTable } from '../../src/delivery/thread/block-table.ts';
import { CatchUp } from '../../src/delivery/thread/catch-up.ts';
import { FeedRegistry } from '../../src/delivery/thread/feed-registry.ts';
import { HotFiles } from '../../src/delivery/thread/hot-files.ts';
import { PageRules } from '../../src/delivery/thread/page-rules.ts';
import { PendingDemands } from '../../src/delivery/thread/pending-demands.ts';
import { RequestAdmission } from '../../src/delivery/thread/request-admission.ts';
import { RequestRouter } from '../../src/delivery/thread/request-router.ts';
import { SharedFiles } from '../../src/delivery/thread/shared-files.ts';
import { TextCoder } from '../../src/delivery/thread/text-coder.ts';
import { ThreadSessions } from '../../src/delivery/thread/thread-sessions.ts';
import type { ServedHost } from '../../src/delivery/thread-protocol.ts';
import { VIEWS } from '../../src/delivery-views.ts';
import type { LlhlsUpdate } from '../../src/services/hls/wire/fmp4/update.ts';
import type { LlhlsViewSettings } from '../../src/services/hls/wire/view-settings.ts';
import { systemClock } from '../../src/util/clock.ts';
import { RequestHead } from '../../src/wire/http/request-head.ts';

const MAX_AGE = { masterPlaylistMaxAge: 0, chunklistMaxAge: 0, segmentMaxAge: -1 };
const VIEW: LlhlsViewSettings = {
  ...{ runMark: 'k', originMode: false, enablePreloadHint: true, rewindSegmentCount: 12, segmentCount: 10 },
  ...{
    defaultLegacy: false,
    defaultRewind: true,
    cacheControl: { ...MAX_AGE, chunklistWithDirectivesMaxAge: 60, partialSegmentMaxAge: -1 },
  },
};
const MULTIVARIANT = [
  '#EXTM3U\n#EXT-X-VERSION:10\n#EXT-X-INDEPENDENT-SEGMENTS\n',
  '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="audio",AUTOSELECT=YES,DEFAULT=YES,CHANNELS="2",URI="chunklist_1_audio_k_llhls.m3u8\u0001"\n',
  '#EXT-X-STREAM-INF:BANDWIDTH=2500000,AVERAGE-BANDWIDTH=2000000,RESOLUTION=1280x720,FRAME-RATE=30.000,CODECS="avc1.64001f,mp4a.40.2",AUDIO="audio"\n',
  'chunklist_0_video_k_llhls.m3u8\u0001\n',
].join('');
const UPDATES: readonly LlhlsUpdate[] = [
  { type: 'multivariant', playlists: [{ fileName: 'llhls', text: MULTIVARIANT }] },
  { type: 'playable', targetDuration: 4, partHoldBack: 1.5 },
];

/** One LL-HLS stream, `app/stream`, in each virtual host. Has its own timers until `close`. */
export class RequestPath {
  readonly #router: RequestRouter;
  readonly #head = new RequestHead(LIMITS.http);
  readonly #sessions: ThreadSessions;
  readonly #admission: Admission;
  readonly #hot: HotFiles;
  #status = 0;
  readonly #sink: AnswerSink = {
    ...{ remoteAddress: '127.0.0.1', remotePort: 40_000, localPort: 3333, secure: false, takesMemoryFiles: false },
    answer: (status) => {
      this.#status = status;
    },
    heldFor: 0,
    keep: () => undefined,
    lead: () => null,
    wait: () => undefined,
    waitBriefly: () => undefined,
    fail: (error) => {
      throw error;
    },
    takeOver: () => null,
  };

  constructor(served: readonly ServedHost[]) {
    const admission = new Admission(
      { ...OPEN_ADMISSION, threads: 1, slot: 1 },
      { connections: 1, relays: 1, log: { warn: () => undefined } },
    );
    const access = new AccessControls({ clock: systemClock, onFault: (error) => console.error(error), tell: () => undefined });
    this.#sessions = new ThreadSessions({
      ...{ tokens: new SessionTokens(new Uint8Array(32), 1), clock: systemClock, share: admission.sessionShare },
      ...{ limit: LIMITS.sessions, idle: LIMITS.sessionIdle, lifetime: LIMITS.sessionLifetime },
      holds: (grant) => access.keys.holds(grant),
    });
    const requestAdmission = new RequestAdmission(access, admission.proxies);
    const counters = newHttpCounters();
    const feeds = new FeedRegistry({
      requestAdmission,
      sessions: this.#sessions,
      answers: null,
      counters,
      clock: systemClock,
      views: VIEWS,
      setWatched: () => undefined,
      onFault: (error) => console.error(error),
    });
    this.#admission = admission;
    this.#hot = new HotFiles(LIMITS.hotBytes, undefined, admission);
    const catchUp = new CatchUp(() => undefined);
    catchUp.caughtUp();
    const hosts = new HostTable();
    this.#router = new RequestRouter({
      ...{ hosts, feeds, pageRules: new PageRules(), catchUp, requestAdmission, maxWaiting: LIMITS.waiting, foreign: null, pages: null },
      demands: new PendingDemands(() => undefined, LIMITS.waiting),
      services: {
        ...{ blocks: new BlockTable(() => undefined), coder: new TextCoder(), files: new SharedFiles(LIMITS.fileBytes), hot: this.#hot },
        ...{ proxies: admission.proxies, counters, answers: null, waiting: new Set() },
      },
    });
    hosts.set(served);
    requestAdmission.setHosts(served);
    for (const [index, { name: vhost }] of served.entries()) {
      const feed = index + 1;
      const crossDomains = { urls: ['*'], headers: [] };
      const address = { vhost, app: 'app', stream: 'stream' };
      feeds.apply({ type: 'feed-open', feed, kind: 'llhls', address, crossDomains, settings: VIEW });
      feeds.apply({ type: 'feed-update', feed, payload: UPDATES });
    }
  }

  /** Status of the answer to a request given as bytes, complete with header lines. */
  ask(bytes: Buffer): number {
    this.#head.parse(bytes, 0, bytes.length);
    this.#router.handle(this.#head, this.#sink);
    return this.#status;
  }

  /** Does the work of a thread's report. */
  report(): void {
    this.#sessions.sweep();
    this.#sessions.takeEvents();
    this.#sessions.takeBytes();
  }

  close(): void {
    this.#hot.close();
    this.#admission.close();
  }
}
