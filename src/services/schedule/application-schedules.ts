/** The scheduled channels of one application: the definitions in its folder, each with its player. */
import type { Application } from '../../core/application.ts';
import { SharedChannels } from '../../core/shared-channels.ts';
import { OWN_WORK, type SharedWork, type WorkSharing } from '../../core/shared-work.ts';
import { isAddressableName } from '../../core/stream-address.ts';
import { DefinitionFolder, DefinitionTooLarge } from '../../state/definition-folder.ts';
import { FileMarks } from '../../state/file-marks.ts';
import type { AllowedFolders } from '../../util/allowed-folders.ts';
import type { Clock } from '../../util/clock.ts';
import { forEachGuarded } from '../../util/guarded.ts';
import { inSlices, textInSlices } from '../../util/in-slices.ts';
import type { Logger } from '../../util/logger.ts';
import { scheduledChannelInformation } from './channel-information.ts';
import { SCHEDULE_FILE, scheduleFilePieces } from './definition-file.ts';
import { changeSteps } from './definition-json.ts';
import { readScheduleFile } from './definition-thread.ts';
import type { Lengths } from './file-lengths.ts';
import { type ScheduleDefinition, ScheduleProblem, withoutPast } from './schedule-definition.ts';
import { type OpenPlayout, ScheduledChannel } from './scheduled-channel.ts';

/** A name that a channel or another stream has. */
export class NameTaken extends Error {
  override readonly name = 'NameTaken';
}

/** Dependencies of the channels of an application. */
export interface ApplicationSchedulesOptions {
  readonly application: Application;
  /** Absolute. */
  readonly scheduleFilesDir: string;
  /** Folders with files that define channels. */
  readonly allowed: AllowedFolders;
  readonly open: OpenPlayout;
  readonly lengths: Lengths;
  /** Whether the stream of a live item is there. */
  readonly isRunning: (url: string) => boolean;
  /** Which node's channels are played; default: all are ours. */
  readonly work?: SharedWork & WorkSharing;
  /** Which files the API wrote; default: those of this object. */
  readonly marks?: FileMarks;
  /** A channel is defined, or redefined; default: nothing. */
  readonly onDefined?: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The files of its folder are the channels: they are followed, and written by `create`, `change` and `remove`. */
export class ApplicationSchedules {
  readonly application: Application;
  readonly #options: ApplicationSchedulesOptions;
  readonly #folder: DefinitionFolder<ScheduleDefinition>;
  /** Its channels as other nodes know them. */
  readonly shared: SharedChannels<ScheduleDefinition>;
  /** Names of all announced channels, of all nodes. */
  readonly #known = new Set<string>();
  readonly #channels = new Map<string, ScheduledChannel>();
  readonly #ready: Promise<void>;
  /** Files that were there at first are not new. */
  #isRead = false;
  /** Troubles of channels that have ended. */
  #pastTroubles = 0;

  constructor(options: ApplicationSchedulesOptions) {
    const { application, scheduleFilesDir, allowed, logger } = options;
    this.application = application;
    this.#options = options;
    this.#folder = new DefinitionFolder<ScheduleDefinition>({
      ...{ folder: scheduleFilesDir, extension: SCHEDULE_FILE, what: 'scheduled channel', allowed, logger },
      isName: isAddressableName,
      parse: (text, name, file) => readScheduleFile({ text, name, file }, logger),
      format: (definition) => textInSlices(scheduleFilePieces(definition)),
      changed: (name, definition) => {
        this.#tell(this.#known.has(name) ? 'channel.changed' : 'channel.created', name);
        this.#known.add(name);
        if (this.#isOurs(name)) this.#play(name, definition);
        options.onDefined?.();
      },
      removed: (name) => {
        this.#end(name);
        this.#known.delete(name);
        this.shared.forget(name);
        this.#tell('channel.deleted', name);
      },
    });
    this.shared = new SharedChannels({
      ...{ kind: 'scheduled', application, folder: this.#folder, ready: () => this.#ready, work: options.work, logger },
      marks: options.marks ?? new FileMarks(null, logger),
    });
    this.#ready = this.#folder.start().then(() => {
      this.#isRead = true;
      this.shared.read();
    });
  }

  /** Resolves when the folder has been read for the first time. */
  ready(): Promise<void> {
    return this.#ready;
  }

  /** The channels that run. */
  get channels(): Iterable<ScheduledChannel> {
    return this.#channels.values();
  }

  /** Troubles of channels that have ended. */
  get pastTroubles(): number {
    return this.#pastTroubles;
  }

  /** Names of all channels, in order. */
  get names(): string[] {
    return [...this.#folder.definitions.keys()];
  }

  /** Whether there is a channel to tick for, be it ours or another node's. */
  get hasDefinitions(): boolean {
    return this.#folder.definitions.size > 0;
  }

  has(name: string): boolean {
    return this.#folder.get(name) !== undefined;
  }

  /** Whether a channel can have this name, and a file of it. */
  canName(name: string): boolean {
    return this.#folder.canName(name);
  }

  /** The file of a channel, whether it is there or not. */
  pathOf(name: string): string {
    return this.#folder.pathOf(name);
  }

  /** A channel with its item on air; null: there is no channel of this name. */
  information(name: string): object | null {
    const definition = this.#folder.get(name);
    return definition === undefined ? null : scheduledChannelInformation(definition, this.#channels.get(name), this.#options.clock.now());
  }

  /** Writes and begins a channel. Rejects with `NameTaken`, `ScheduleProblem`, or for a file that cannot be written. */
  create(definition: ScheduleDefinition): Promise<void> {
    const { name } = definition.stream;
    return this.shared
      .change(name, (current) => {
        if (current !== undefined || this.application.hasStream(name)) throw new NameTaken(name);
        return this.#current(definition);
      })
      .catch(refuseLarge);
  }

  /** Writes a request's change of a channel, and plays by it. Rejects with `ScheduleProblem`, or if a file cannot be written. */
  change(name: string, body: Readonly<Record<string, unknown>>): Promise<boolean> {
    let found = true;
    return this.shared
      .change(name, async (current) => {
        found = current !== undefined;
        if (current === undefined) throw new Error('the channel was removed meanwhile');
        return this.#current(await inSlices(changeSteps(current, body)));
      })
      .then(
        () => true,
        (error: unknown) => {
          if (!found) return false;
          return refuseLarge(error);
        },
      );
  }

  /** Ends a channel and removes its file. Rejects for a file that cannot be removed. */
  remove(name: string): Promise<void> {
    return this.shared.remove(name);
  }

  /** To be called ten times a second. */
  tick(): void {
    for (const [name, definition] of this.#folder.definitions) {
      if (!this.#isOurs(name)) this.#end(name);
      else if (!this.#channels.has(name)) this.#play(name, definition);
    }
    const failed = (channel: ScheduledChannel, error: unknown): void => {
      const stream = channel.settings.name;
      this.#options.logger.limited.error({ stream, err: error }, `scheduled channel '${stream}' failed inside the server`);
    };
    forEachGuarded(this.#channels.values(), (channel) => channel.tick(), failed);
  }

  /** Ends all channels; files stay. Idempotent. */
  async close(): Promise<void> {
    const closed = this.#folder.close();
    for (const name of [...this.#channels.keys()]) this.#end(name);
    await closed;
  }

  /** Ended programs are not written. */
  #current(definition: ScheduleDefinition): ScheduleDefinition {
    return withoutPast(definition, this.#options.clock.now());
  }

  #play(name: string, definition: ScheduleDefinition): void {
    const { open, lengths, isRunning, clock } = this.#options;
    const existing = this.#channels.get(name);
    const logger = this.#options.logger.child({ stream: name });
    logger.info({ programs: definition.programs.length }, `scheduled channel '${name}' ${existing === undefined ? 'begins' : 'changes'}`);
    if (existing !== undefined) existing.update(definition);
    else this.#channels.set(name, new ScheduledChannel({ definition, open, lengths, isRunning, clock, logger }));
  }

  #isOurs(name: string): boolean {
    const { vhost, name: app } = this.application;
    return (this.#options.work ?? OWN_WORK).stateOf({ kind: 'scheduled', vhost, app, name }) === 'ours';
  }

  #tell(type: 'channel.created' | 'channel.changed' | 'channel.deleted', stream: string): void {
    const { vhost, name: app, notices } = this.application;
    if (this.#isRead) notices.post({ type, vhost, app, kind: 'scheduled', stream });
  }

  #end(name: string): void {
    const channel = this.#channels.get(name);
    if (channel === undefined) return;
    this.#channels.delete(name);
    this.#pastTroubles += channel.trouble.count;
    channel.close();
    this.#options.logger.info({ stream: name }, `scheduled channel '${name}' ends`);
  }
}

/** A schedule that its file cannot hold is the client's error. */
function refuseLarge(error: unknown): never {
  throw error instanceof DefinitionTooLarge ? new ScheduleProblem(error.message) : error;
}
