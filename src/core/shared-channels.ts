/** Channels that are files, as work that nodes share: the API of any node writes the file of all of them. */
import { promisify } from 'node:util';
import { deflateRaw, inflateRaw } from 'node:zlib';
import { type AroundWrite, type DefinitionFolder, MAX_DEFINITION_FILE_BYTES } from '../state/definition-folder.ts';
import type { FileMarks, MarkedFile } from '../state/file-marks.ts';
import type { Logger } from '../util/logger.ts';
import {
  type DefinedWork,
  MAX_DEFINITION_BYTES,
  OWN_WORK,
  WORK_NOUNS,
  type Work,
  type WorkKeeper,
  type WorkSharing,
} from './shared-work.ts';

const deflated = promisify(deflateRaw);
const inflated = promisify(inflateRaw);

/** The channels of one kind in an application. */
export interface SharedChannelsOptions<Definition> {
  readonly kind: 'scheduled' | 'multiplex';
  readonly application: { readonly vhost: string; readonly name: string };
  readonly folder: DefinitionFolder<Definition>;
  /** Resolves when the folder has been read for the first time. */
  readonly ready: () => Promise<void>;
  /** The file of a channel, without extension, whether it is there or not; default: that of its name. */
  readonly fileOf?: (channel: string) => string;
  /** The channel that a file defines; default: that of its name. */
  readonly channelOf?: (definition: Definition, file: string) => string;
  /** Tells files that the API of a node wrote from files that people wrote or edited. */
  readonly marks: FileMarks;
  /** Default: there are no other nodes. */
  readonly work?: WorkSharing | undefined;
  readonly logger: Logger;
}

/**
 * Nodes share what an API wrote: the file as it is. A file that somebody wrote or edited is this node's own and stays, whatever the others
 * define; a request to this node's API replaces it, and is told to them.
 */
export class SharedChannels<Definition> {
  readonly #options: SharedChannelsOptions<Definition>;
  /** Digests of own files that stay beside a definition of the other nodes, by file. */
  readonly #noted = new Map<string, string>();
  #isRead = false;

  constructor(options: SharedChannelsOptions<Definition>) {
    this.#options = options;
  }

  /** The folder has been read for the first time. */
  read(): void {
    this.#isRead = true;
  }

  /** As `DefinitionFolder.change`; the other nodes are told. */
  change(channel: string, make: (current: Definition | undefined) => Definition | Promise<Definition>): Promise<void> {
    return this.#work.change(this.#workOf(channel), async (tell) => {
      const file = this.#fileOf(channel);
      let shared: object | null = null;
      await this.#options.folder.change(file, make, async (write, put) => {
        shared = await packed(write.text);
        // Nodes do not learn what is too large. Without a mark the file is this node's own: what they have does not replace it.
        await (shared === null ? put() : this.#marked(file)(write, put));
        shared ??= { file: write.text };
      });
      if (shared !== null) tell(shared);
    });
  }

  /** Ends a channel and removes its file, here and at the other nodes. Rejects if that cannot be done; nothing has changed then. */
  remove(channel: string): Promise<void> {
    const file = this.#fileOf(channel);
    return this.#work.change(this.#workOf(channel), async (tell) => {
      await this.#options.folder.remove(file);
      this.forget(file);
      tell(null);
    });
  }

  /** A file is gone. */
  forget(file: string): void {
    const { marks, logger } = this.#options;
    this.#noted.delete(file);
    marks.remove(this.#markOf(file)).catch((error: unknown) => logger.warn({ err: error }, 'the mark of a file that is gone is kept'));
  }

  /** Channels that an API defined, without those that `isKnown`. */
  async *definitions(isKnown: (work: Work) => boolean): AsyncGenerator<DefinedWork, void> {
    const { folder, ready, marks } = this.#options;
    await ready();
    for (const [file, definition] of folder.definitions) {
      const work = this.#workOf(this.#channelOf(definition, file));
      if (!this.#isMarked(file) || isKnown(work)) continue;
      // A file that has gone or changed meanwhile is another turn's.
      const found = await folder.read(file).catch(() => null);
      if (found === null || !marks.has(this.#markOf(file), found.digest)) continue;
      const shared = await packed(found.text);
      if (shared !== null) yield { work, definition: shared };
    }
  }

  /** Whether this node plays the channel as an API defined it, or has said that its own file stays. True until the folder has been read. */
  has(channel: string): boolean {
    const { folder } = this.#options;
    const file = this.#fileOf(channel);
    if (!this.#isRead) return true;
    const definition = folder.get(file);
    if (definition === undefined || this.#channelOf(definition, file) !== channel) return false;
    return this.#isMarked(file) || this.#noted.get(file) === folder.digestOf(file);
  }

  /** As `WorkKeeper.adopt`. */
  async adopt(channel: string, definition: Readonly<Record<string, unknown>>): Promise<boolean> {
    const { folder, ready, logger } = this.#options;
    const text = await unpacked(definition);
    await ready();
    const file = this.#fileOf(channel);
    const path = folder.pathOf(file);
    let isTheirs = true;
    const check = (found: Definition): void => {
      if (this.#channelOf(found, file) !== channel) throw new Error('its definition is that of another channel');
    };
    await folder.put(file, text, check, async (write, put) => {
      const { before, digest } = write;
      const present = folder.get(file);
      if (present !== undefined && this.#channelOf(present, file) !== channel) {
        throw new Error(`${path} defines the ${this.#noun} '${this.#channelOf(present, file)}'`);
      }
      const isOwn = before !== null && !this.#isMarked(file);
      if (isOwn && present === undefined) throw new Error(`${path} is this node's own, and cannot be used`);
      if (before !== digest && !isOwn) await this.#marked(file)(write, put);
      if (!isOwn) return;
      this.#noted.set(file, before);
      isTheirs = before === digest;
      if (isTheirs) return;
      logger.warn(
        { work: channel },
        `the ${this.#noun} '${channel}' of other nodes is not followed: ${path} was not written by an API, and stays`,
      );
    });
    return isTheirs;
  }

  /** As `WorkKeeper.drop`. */
  async drop(channel: string): Promise<boolean> {
    const { folder, ready, logger } = this.#options;
    await ready();
    const file = this.#fileOf(channel);
    let isOwn = false;
    await folder.remove(file, (digest) => {
      isOwn = digest !== null && !this.#isMarked(file);
      return !isOwn;
    });
    if (!isOwn) this.forget(file);
    else {
      const path = folder.pathOf(file);
      logger.warn(
        { work: channel },
        `the ${this.#noun} '${channel}' stays, which another node has deleted: ${path} was not written by an API`,
      );
    }
    return !isOwn;
  }

  get #work(): WorkSharing {
    return this.#options.work ?? OWN_WORK;
  }

  get #noun(): string {
    return WORK_NOUNS[this.#options.kind];
  }

  #marked(file: string): AroundWrite {
    return ({ before, digest }, put) => this.#options.marks.during(this.#markOf(file), { before, after: digest }, put);
  }

  #isMarked(file: string): boolean {
    const digest = this.#options.folder.digestOf(file);
    return digest !== null && this.#options.marks.has(this.#markOf(file), digest);
  }

  #workOf(channel: string): Work {
    const { kind, application } = this.#options;
    return { kind, vhost: application.vhost, app: application.name, name: channel };
  }

  #markOf(file: string): MarkedFile {
    return { ...this.#workOf(file) };
  }

  #fileOf(channel: string): string {
    return this.#options.fileOf?.(channel) ?? channel;
  }

  #channelOf(definition: Definition, file: string): string {
    return this.#options.channelOf?.(definition, file) ?? file;
  }
}

/** The running applications with channels of one kind. */
export interface ChannelApplications {
  /** Those of a virtual host. */
  sharedIn(vhost: string): Iterable<Shared>;
  /** Null for an application that is not there or does not have the provider. */
  sharedOf(vhost: string, app: string): Shared | null;
}

type Shared = Pick<SharedChannels<unknown>, 'definitions' | 'has' | 'adopt' | 'drop'>;

/** Lets other nodes define channels here. `provider`: its name in the settings. */
export function channelKeeper(kind: 'scheduled' | 'multiplex', provider: string, applications: ChannelApplications): WorkKeeper {
  return {
    kind,
    async *definitions(vhost, isKnown) {
      for (const channels of applications.sharedIn(vhost)) yield* channels.definitions(isKnown);
    },
    has: ({ vhost, app, name }) => applications.sharedOf(vhost, app)?.has(name) === true,
    adopt: async ({ vhost, app, name }, definition) => {
      const channels = applications.sharedOf(vhost, app);
      if (channels === null) throw new Error(`the provider ${provider} is not enabled in application '${vhost}/${app}'`);
      return await channels.adopt(name, definition);
    },
    drop: async ({ vhost, app, name }) => (await applications.sharedOf(vhost, app)?.drop(name)) ?? true,
  };
}

/** A file as nodes share it: as it is, or deflated; null: it is too large. */
async function packed(text: string): Promise<object | null> {
  const plain = { file: text };
  if (text.length < MAX_DEFINITION_BYTES && fits(plain)) return plain;
  const small = { deflated: (await deflated(text)).toString('base64') };
  return fits(small) ? small : null;
}

function fits(shared: object): boolean {
  return Buffer.byteLength(JSON.stringify(shared)) <= MAX_DEFINITION_BYTES;
}

/** Rejects with an `Error`. */
async function unpacked({ file, deflated: small }: Readonly<Record<string, unknown>>): Promise<string> {
  if (typeof file === 'string') return file;
  if (typeof small !== 'string') throw new Error('its definition cannot be read');
  try {
    return (await inflated(Buffer.from(small, 'base64'), { maxOutputLength: MAX_DEFINITION_FILE_BYTES })).toString('utf8');
  } catch (cause) {
    throw new Error('its definition cannot be read', { cause });
  }
}
