/** Sends alerts about events and faults to a server, by the rules of `Alert`. */
import { isDeepStrictEqual } from 'node:util';
import { type AlertConfig, type AlertRulesConfig, parseAlertRules, type ServerConfig } from '../../config/index.ts';
import { readXmlFile } from '../../config/xml-thread.ts';
import type { Application } from '../../core/application.ts';
import type { Notice } from '../../core/notices/notice.ts';
import type { NoticeBoard } from '../../core/notices/notice-board.ts';
import type { QueueRegistry } from '../../core/queue-registry.ts';
import { internalAppName, type StreamAddress, streamKey } from '../../core/stream-address.ts';
import { queueStatuses } from '../../monitoring/queues.ts';
import type { SegmentSource } from '../../services/hls/packager/segment-observer.ts';
import type { Clock } from '../../util/clock.ts';
import { FileWatch } from '../../util/file-watch.ts';
import { guarded } from '../../util/guarded.ts';
import type { Logger } from '../../util/logger.ts';
import { maskedJson } from '../../util/masked-json.ts';
import { messageOf } from '../../util/message-of.ts';
import { textWithout } from '../../util/private-logger.ts';
import type { QueueStatus } from '../../util/queue-gauge.ts';
import { ALL_GOOD, type AlertMessage } from './alert-rules.ts';
import { type AlertFigures, AlertSender } from './alert-sender.ts';
import { type SegmentKind, type StreamAlert, WatchedStream } from './watched-stream.ts';

/** Interval of the checks of streams and queues, ms. */
const LOOK_MS = 500;
/** Time for unsent alerts when the server stops, ms. */
const STOP_MS = 1000;
/** Codes that follow from live events alone. */
const STATUS = /_STREAM_(CREATED|PREPARED|DELETED)$|_READY$/;

/** Sources and destination of alerts. */
export interface AlertsOptions {
  /** Undefined: no alerts are sent. */
  readonly config: AlertConfig | undefined;
  readonly notices: NoticeBoard;
  readonly application: (vhost: string, app: string) => Application | undefined;
  readonly segments: Readonly<Record<SegmentKind, (address: StreamAddress) => SegmentSource | undefined>>;
  readonly queues: QueueRegistry;
  /** Hides addresses in texts, if the configuration asks for it. */
  readonly hide?: (text: string) => string;
  readonly clock: Clock;
  readonly logger: Logger;
}

function isWebUrl(url: string): boolean {
  return /^https?:\/\//i.test(url) && URL.canParse(url);
}

/** Settings with which alerts can be sent; undefined for others, which are logged. */
function usableOf(config: AlertConfig | undefined, logger: Logger): AlertConfig | undefined {
  if (config === undefined) return undefined;
  if (!isWebUrl(config.url)) {
    logger.warn({}, 'no alerts are sent: Alert/Url must begin with http:// or https://');
    return undefined;
  }
  if (config.rules === undefined && config.rulesFile === undefined)
    logger.warn({}, 'no alerts are sent: Alert has neither Rules nor RulesFile');
  return config;
}

/** The alerts of a server, which sends none without settings. */
export function startAlerts({ alert, privacyProtection }: ServerConfig, parts: Omit<AlertsOptions, 'config' | 'hide'>): Alerts {
  const logger = parts.logger.child({ part: 'alert' });
  return new Alerts({ ...parts, config: alert, logger, ...(privacyProtection && { hide: textWithout }) });
}

/** One for each server, created before its first stream; its owner calls `stop` after all streams. */
export class Alerts {
  readonly #options: AlertsOptions;
  /** Null: no alerts are sent. */
  #sender: AlertSender | null = null;
  #config: AlertConfig | undefined;
  readonly #streams = new Map<string, WatchedStream>();
  #timer: NodeJS.Timeout | null = null;
  readonly #unwatch: () => void;
  #file: FileWatch | null = null;
  #rules: AlertRulesConfig = {};
  /** Names of the queues that were reported as full. */
  #congested = '';

  constructor(options: AlertsOptions) {
    const { config, notices, logger } = options;
    this.#options = options;
    const hear = guarded(logger, 'an alert', (notice: Notice) => this.#hear(notice));
    this.#unwatch = notices.watch(({ notice }) => hear(notice));
    this.amend(config);
  }

  /** Null: no alerts are sent. */
  get figures(): AlertFigures | null {
    return this.#sender?.figures ?? null;
  }

  /** Switches to other settings. Alerts that wait for the previous server are still sent to it, for one second at most. */
  amend(config: AlertConfig | undefined): void {
    const { clock, logger } = this.#options;
    const before = this.#config;
    if (isDeepStrictEqual(before, config) && this.#sender !== null) return;
    const usable = usableOf(config, logger);
    this.#config = usable;
    this.#file?.close();
    this.#file = null;
    const { url, secretKey, timeout, rules = {}, rulesFile } = usable ?? {};
    // Rules from the same file stay in force until the file is read again.
    if (rulesFile === undefined || rulesFile !== before?.rulesFile) this.#rules = rulesFile === undefined ? rules : {};
    const isSame = before?.url === url && before?.secretKey === secretKey && before?.timeout === timeout;
    if (!isSame) void this.#sender?.stop(STOP_MS);
    if (url === undefined || secretKey === undefined || timeout === undefined) {
      this.#sender = null;
      if (this.#timer !== null) clearInterval(this.#timer);
      this.#timer = null;
      return;
    }
    // Existing streams are not reported as new.
    if (this.#sender === null) for (const stream of this.#streams.values()) stream.adopt();
    if (!isSame || this.#sender === null) this.#sender = new AlertSender({ url, secretKey, timeoutMs: timeout, clock, logger });
    this.#timer ??= setInterval(
      guarded(logger, 'the watch for alerts', () => this.look()),
      LOOK_MS,
    ).unref();
    if (rulesFile !== undefined) this.#file = new FileWatch({ paths: [rulesFile], changed: () => this.#readRules(rulesFile), logger });
  }

  /** Checks all streams and queues; runs twice a second. */
  look(): void {
    for (const stream of this.#streams.values()) stream.look();
    if (this.#rules.internalQueueCongestion !== undefined) this.#lookAtQueues();
  }

  /** Resolves when the pending alerts are sent, after one second at the latest. Idempotent. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#unwatch();
    this.#file?.close();
    await this.#sender?.stop(STOP_MS);
  }

  #hear(notice: Notice): void {
    switch (notice.type) {
      case 'stream.created':
        this.#begin(notice);
        break;
      case 'stream.ready': {
        const output = this.#options.application(notice.vhost, notice.app)?.outbound(notice.output);
        if (output !== undefined) this.#streams.get(streamKey(notice))?.addOutput(output);
        break;
      }
      case 'stream.ended':
        this.#streams.get(streamKey(notice))?.end();
        this.#streams.delete(streamKey(notice));
        break;
      case 'refusal.counted':
        if (notice.reason === 'duplicate-name') this.#refused(notice);
        break;
      default:
    }
  }

  #begin({ vhost, app, stream: name }: StreamAddress): void {
    const { application, segments, clock } = this.#options;
    const stream = application(vhost, app)?.stream(name);
    if (stream === undefined) return;
    const watched = new WatchedStream({
      stream,
      rules: () => this.#rules,
      segments: (kind, output) => segments[kind]({ vhost, app, stream: output }),
      hide: (text) => this.#hide(text),
      now: () => clock.now(),
      send: (alert) => this.#send(alert, { vhost, app, stream: name }),
    });
    this.#streams.set(streamKey({ vhost, app, stream: name }), watched);
  }

  /** The second publisher has no stream; only its name can be reported. */
  #refused({ vhost, app, stream }: Partial<StreamAddress>): void {
    if (this.#rules.ingress?.streamStatus === undefined || vhost === undefined || app === undefined || stream === undefined) return;
    const description = 'The ingress stream could not be created because its name is already in use';
    this.#sender?.push({
      messages: [{ code: 'INGRESS_STREAM_CREATION_FAILED_DUPLICATE_NAME', description }],
      sourceUri: `${internalAppName(vhost, app)}/${stream}`,
      type: 'INGRESS',
    });
  }

  #lookAtQueues(): void {
    const full = this.#options.queues.statuses().filter(({ size, threshold }) => threshold > 0 && size >= threshold);
    const congested = full.map(({ urn }) => urn).join();
    if (congested === this.#congested) return;
    this.#congested = congested;
    const names = full.map(({ urn }) => urn).join(', ');
    const message = full.length === 0 ? ALL_GOOD : { code: 'INTERNAL_QUEUE_CONGESTION', description: `Internal queues are full: ${names}` };
    const internalQueues: QueueStatus[] = queueStatuses(full);
    this.#sender?.push({ internalQueues, messages: [message], type: 'INTERNAL_QUEUE' });
    this.#tell([message], {});
  }

  #send(alert: StreamAlert, address: StreamAddress): void {
    this.#sender?.push(alert);
    if (!alert.messages.some(({ code }) => STATUS.test(code))) this.#tell(alert.messages, address);
  }

  #tell(messages: readonly AlertMessage[], address: Partial<StreamAddress>): void {
    const detail = messages.map(({ description }) => description).join('; ');
    this.#options.notices.post({ type: 'alert.changed', ...address, codes: messages.map(({ code }) => code), detail });
  }

  #hide(text: string): string {
    const masked = maskedJson(text);
    return this.#options.hide?.(masked) ?? masked;
  }

  /** An unreadable file changes nothing. */
  async #readRules(file: string): Promise<void> {
    const { logger } = this.#options;
    try {
      this.#rules = parseAlertRules(await readXmlFile(file, logger));
      logger.info({ file }, 'alert rules loaded');
    } catch (error) {
      logger.error({ file }, `alert rules cannot be loaded: ${messageOf(error)}; the previous rules stay in force`);
    }
  }
}
