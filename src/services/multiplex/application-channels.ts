import { isDeepStrictEqual } from 'node:util';
import type { Application } from '../../core/application.ts';
import type { CloseReason } from '../../core/ingest.ts';
import { SharedChannels } from '../../core/shared-channels.ts';
import { OWN_WORK, type SharedWork, type WorkSharing } from '../../core/shared-work.ts';
import { DefinitionFolder } from '../../state/definition-folder.ts';
import type { FileMarks } from '../../state/file-marks.ts';
import type { AllowedFolders } from '../../util/allowed-folders.ts';
import { hasHiddenCharacter } from '../../util/hidden-characters.ts';
import type { Logger } from '../../util/logger.ts';
import type { ChannelDefinition } from './channel-definition.ts';
import { MultiplexChannel, type MultiplexChannelOptions } from './multiplex-channel.ts';
import { formatMuxFile, MUX_EXTENSION, readMuxFile } from './mux-file.ts';

const SCAN_MS = 500;

/** The application, which must have the provider, and the parts for making channels. */
export interface ApplicationChannelsOptions {
  readonly application: Application;
  /** `MuxFilesDir`, absolute. */
  readonly folder: string;
  /** Where the files of channels may be. */
  readonly allowed: AllowedFolders;
  readonly find: MultiplexChannelOptions['find'];
  /** Finds how a channel would be made of itself; null: it would not. */
  readonly loopFinder: (definition: ChannelDefinition) => () => string | null;
  readonly lineage: MultiplexChannelOptions['lineage'];
  /** Which node's channels are played; default: all are ours. */
  readonly work?: SharedWork & WorkSharing;
  /** Which files the API wrote. */
  readonly marks: FileMarks;
  /** Called when channels have come, gone or changed. */
  readonly onChanged: () => void;
  readonly logger: Logger;
}

/** The multiplex channels of one application, defined by the files of its folder, which the API writes too. */
export class ApplicationChannels {
  readonly application: Application;
  readonly #options: ApplicationChannelsOptions;
  readonly #folder: DefinitionFolder<ChannelDefinition>;
  /** Its channels as other nodes know them. */
  readonly shared: SharedChannels<ChannelDefinition>;
  /** By the names of their files, without extension. */
  readonly #channels = new Map<string, MultiplexChannel>();
  /** Names of channels that several files define, as told. */
  readonly #doubles = new Set<string>();
  /** Files that were there at first are not new. */
  #isRead = false;
  #ready: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: ApplicationChannelsOptions) {
    this.#options = options;
    this.application = options.application;
    const settle = (): void => this.#settle();
    this.#folder = new DefinitionFolder({
      folder: options.folder,
      extension: MUX_EXTENSION,
      what: 'multiplex channel',
      allowed: options.allowed,
      isName: (name) => name !== '' && !hasHiddenCharacter(name),
      parse: (text, _name, file) => readMuxFile({ text, file }, options.logger),
      format: formatMuxFile,
      changed: settle,
      removed: (file) => {
        settle();
        this.shared.forget(file);
      },
      logger: options.logger,
      scanMs: SCAN_MS,
    });
    const { application, work, marks, logger } = options;
    this.shared = new SharedChannels({
      ...{ kind: 'multiplex', application, folder: this.#folder, ready: () => this.#ready, work, marks, logger },
      fileOf: (channel) => this.#fileOf(channel),
      channelOf: ({ outputStream }) => outputStream.name,
    });
  }

  /** Reads the folder and follows it. Never rejects. */
  start(): Promise<void> {
    this.#ready = this.#folder.start().then(() => {
      this.#isRead = true;
      this.shared.read();
    });
    return this.#ready;
  }

  /** Resolves when the folder has been read for the first time since `start`. */
  ready(): Promise<void> {
    return this.#ready;
  }

  /** All channels, including those that wait for their sources, sorted by name. */
  get channels(): MultiplexChannel[] {
    return [...this.#channels.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  get(name: string): MultiplexChannel | undefined {
    return this.#entry(name)?.[1];
  }

  /** The file of a channel, whether it is there or not. */
  pathOf(name: string): string {
    return this.#folder.pathOf(this.#fileOf(name));
  }

  /** Defines a channel, durably; one of its name is replaced. Rejects when its file cannot be written, and nothing has changed then. */
  save(definition: ChannelDefinition): Promise<void> {
    const { name } = definition.outputStream;
    return this.shared.change(name, (before) => {
      if (before === undefined || before.outputStream.name === name) return definition;
      throw new Error(`${this.pathOf(name)} defines the multiplex channel '${before.outputStream.name}'`);
    });
  }

  /** Ends a channel and removes its file. Rejects when that cannot be done, and nothing has changed then. */
  remove(name: string): Promise<void> {
    return this.shared.remove(name);
  }

  /** Looks for the sources of all channels. */
  look(): void {
    for (const channel of this.#channels.values()) channel.look();
  }

  /** Ends all channels; files stay. Idempotent. */
  async close(reason: CloseReason): Promise<void> {
    this.#closed = true;
    for (const channel of this.#channels.values()) channel.close(reason);
    this.#channels.clear();
    await this.#folder.close();
  }

  /** The name of the file of a channel, without extension; where there is none, that of the channel itself. */
  #fileOf(name: string): string {
    return this.#entry(name)?.[0] ?? name;
  }

  #entry(name: string): [key: string, channel: MultiplexChannel] | undefined {
    // The API names files after their channels.
    const usual = this.#channels.get(name);
    if (usual?.name === name) return [name, usual];
    return [...this.#channels].find(([, channel]) => channel.name === name);
  }

  /** Updates the channels from the files. */
  #settle(): void {
    if (this.#closed) return;
    const wanted = this.#wanted();
    const before = new Set(Array.from(this.#channels.values(), ({ name }) => name));
    for (const [key, channel] of this.#channels) {
      const definition = wanted.get(key);
      if (definition !== undefined && isDeepStrictEqual(definition, channel.definition)) continue;
      this.#channels.delete(key);
      const detail = definition === undefined ? 'the multiplex channel was removed' : 'the multiplex channel was defined anew';
      channel.close({ code: 'deleted', detail });
      if (definition?.outputStream.name !== channel.name) this.#tell('channel.deleted', channel.name);
    }
    for (const [key, definition] of wanted) {
      if (this.#channels.has(key)) continue;
      this.#channels.set(key, this.#make(definition));
      const { name } = definition.outputStream;
      this.#tell(before.has(name) ? 'channel.changed' : 'channel.created', name);
    }
    this.#options.onChanged();
    this.look();
  }

  #tell(type: 'channel.created' | 'channel.changed' | 'channel.deleted', stream: string): void {
    const { vhost, name: app, notices } = this.application;
    if (this.#isRead) notices.post({ type, vhost, app, kind: 'multiplex', stream });
  }

  /** By file; of several files that define one name, the first counts. */
  #wanted(): Map<string, ChannelDefinition> {
    const wanted = new Map<string, ChannelDefinition>();
    const owners = new Map<string, string>();
    const doubles = new Set<string>();
    for (const [key, definition] of this.#folder.definitions) {
      const { name } = definition.outputStream;
      const owner = owners.get(name);
      if (owner === undefined) {
        owners.set(name, key);
        wanted.set(key, definition);
        continue;
      }
      doubles.add(name);
      if (this.#doubles.has(name)) continue;
      const path = this.#folder.pathOf(key);
      this.#options.logger.error(
        { name },
        `${path} is left out: ${this.#folder.pathOf(owner)} defines the multiplex channel '${name}' too`,
      );
    }
    this.#doubles.clear();
    for (const name of doubles) this.#doubles.add(name);
    return wanted;
  }

  #make(definition: ChannelDefinition): MultiplexChannel {
    const { application, find, loopFinder, lineage, work = OWN_WORK, logger } = this.#options;
    const { vhost, name: app } = application;
    const { name } = definition.outputStream;
    return new MultiplexChannel({
      ...{ definition, application, find, loop: loopFinder(definition), lineage },
      isOthers: () => work.stateOf({ kind: 'multiplex', vhost, app, name }) !== 'ours',
      logger: logger.child({ channel: definition.outputStream.name }),
    });
  }
}
