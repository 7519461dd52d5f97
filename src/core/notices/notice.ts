/** The live events of the server, as clients of `GET /v1/events` get them. */

interface InVhost {
  readonly vhost: string;
}
interface InApp extends InVhost {
  readonly app: string;
}
interface InStream extends InApp {
  readonly stream: string;
}

/** The stream as the API lists it: the inbound one. */
export type StreamNotice = InStream &
  (
    | { readonly type: 'stream.created' | 'stream.sourceChanged'; readonly sourceType: string; readonly sourceUrl: string }
    /** `output`: name of the output stream that can be played from now on. */
    | { readonly type: 'stream.ready'; readonly output: string }
    /** `reason`: a `CloseReason` code; `detail`: in words. */
    | { readonly type: 'stream.sourceLost' | 'stream.ended'; readonly reason: string; readonly detail: string }
  );

/** `publisher`: a `PublisherKind`. */
export type SessionNotice =
  | (InStream & { readonly type: 'session.started'; readonly session: string; readonly publisher: string })
  | (InStream & {
      readonly type: 'session.ended';
      readonly session: string;
      readonly publisher: string;
      readonly reason: string;
      readonly seconds: number;
      readonly bytes: number;
    })
  /** Sum of sessions that were too many to post one by one; without an address it covers many streams. */
  | (Partial<InStream> & { readonly type: 'session.summary'; readonly started: number; readonly ended: number });

/** `stream`: the followed output stream. `reason`: the error, in the state `error`. */
export type TaskNotice = InStream & {
  readonly type: 'task.changed';
  readonly task: 'recording' | 'push' | 'dump';
  readonly id: string;
  readonly state: string;
  readonly reason?: string;
};

/** `reason`: a code; `count`: the number of refusals. Floods are reported without a place. */
export type RefusalNotice = Partial<InStream> & {
  readonly type: 'refusal.counted';
  readonly direction: 'incoming' | 'outgoing';
  readonly protocol: string;
  readonly reason: string;
  readonly count: number;
  readonly detail?: string;
};

/** All present problems by the rules of `Alert`; `OK` if there are none. Without an address: of the server. */
export type AlertNotice = Partial<InStream> & {
  readonly type: 'alert.changed';
  readonly codes: readonly string[];
  readonly detail: string;
};

/** A changed object of the configuration, by name; the API has its definition. */
export type ConfigNotice =
  | (InVhost & { readonly type: 'vhost.created' | 'vhost.deleted' })
  | (InApp & { readonly type: 'app.created' | 'app.changed' | 'app.deleted' | 'keys.changed' })
  | (InApp & { readonly type: 'outputProfile.created' | 'outputProfile.changed' | 'outputProfile.deleted'; readonly profile: string })
  | (InApp & {
      readonly type: 'channel.created' | 'channel.changed' | 'channel.deleted';
      readonly kind: 'scheduled' | 'multiplex';
      readonly stream: string;
    });

/** Any notice. */
export type Notice = StreamNotice | SessionNotice | TaskNotice | RefusalNotice | AlertNotice | ConfigNotice;

/** Any of the types. */
export type NoticeType = Notice['type'];

/** Kinds of notices, which followers choose by. */
export type NoticeGroup = 'streams' | 'sessions' | 'tasks' | 'refusals' | 'alerts' | 'config';

/** All types there are, with their groups. */
export const NOTICE_TYPES: Readonly<Record<NoticeType, NoticeGroup>> = {
  'stream.created': 'streams',
  'stream.ready': 'streams',
  'stream.sourceLost': 'streams',
  'stream.sourceChanged': 'streams',
  'stream.ended': 'streams',
  'session.started': 'sessions',
  'session.ended': 'sessions',
  'session.summary': 'sessions',
  'task.changed': 'tasks',
  'refusal.counted': 'refusals',
  'alert.changed': 'alerts',
  'vhost.created': 'config',
  'vhost.deleted': 'config',
  'app.created': 'config',
  'app.changed': 'config',
  'app.deleted': 'config',
  'keys.changed': 'config',
  'outputProfile.created': 'config',
  'outputProfile.changed': 'config',
  'outputProfile.deleted': 'config',
  'channel.created': 'config',
  'channel.changed': 'config',
  'channel.deleted': 'config',
};

/** Receives all notices. Cheap with or without followers; never throws. */
export interface Notices {
  post(notice: Notice): void;
}

/** Discards all notices. */
export const NO_NOTICES: Notices = { post: () => undefined };
