/** Checks the addon, FFmpeg and graphics cards. */
import { QueueRegistry } from '../../core/queue-registry.ts';
import { loadAddon } from '../../native/addon.ts';
import type { CodecModuleItem } from '../../transcoder/codec-modules.ts';
import { protection } from '../../transcoder/sandbox.ts';
import { TranscoderSupervisor } from '../../transcoder/supervisor.ts';
import { systemClock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/message-of.ts';
import { type Diagnosis, diagnosesOf } from './diagnosis.ts';

/** Whether the addon is loaded, and what is missing without it. */
export function native(): Diagnosis {
  const { ok, warning, problem } = diagnosesOf('addon');
  const loaded = loadAddon();
  if (loaded.addon !== null) return ok('the native addon is loaded');
  const text = `the addon cannot be loaded: ${loaded.reason}; WebRTC, SRT and HTTP run in Node.js and need several times the CPU`;
  return process.env['MILLRACE_NATIVE'] === 'off'
    ? warning(text)
    : problem(text, 'install a C++ compiler and run npm rebuild, or npm run build:native in a checkout');
}

/** The restrictions of transcoder processes. */
export async function sandbox(): Promise<Diagnosis> {
  const { ok, warning } = diagnosesOf('sandbox');
  const { missing, why } = await protection();
  if (missing.length === 0) return ok('transcoder processes cannot use the network, gain privileges or open other files');
  return warning(
    `transcoder processes are not protected against: ${missing.join(', ')} (${why})`,
    'use a kernel with Landlock (5.13) and seccomp, and build the addon',
  );
}

/** A transcoder supervisor, which knows FFmpeg's codecs; `libraryVersion` is known after `codecModules`. */
export type CodecSource = Pick<TranscoderSupervisor, 'codecModules' | 'libraryVersion' | 'close'>;

function supervised(logger: Logger): CodecSource {
  return new TranscoderSupervisor({ clock: systemClock, logger, queues: new QueueRegistry(systemClock) });
}

/** FFmpeg as transcoder processes use it, and its hardware codecs. Starts such a process and ends it. */
export async function codecs(open: (logger: Logger) => CodecSource = supervised): Promise<readonly Diagnosis[]> {
  const said: string[] = [];
  const transcoder = open(collecting(said));
  try {
    const modules = await transcoder.codecModules();
    return [ffmpeg(transcoder.libraryVersion ?? '', modules), gpu(modules)];
  } catch (error) {
    const why = [messageOf(error), ...said.slice(0, 1)].join(': ');
    const { problem } = diagnosesOf('ffmpeg');
    return [
      problem(
        `streams cannot be encoded, and no thumbnails made: ${why}`,
        'reinstall the packages with optional ones (npm ci --include=optional)',
      ),
    ];
  } finally {
    await transcoder.close();
  }
}

function ffmpeg(version: string, modules: readonly CodecModuleItem[]): Diagnosis {
  const { ok, warning } = diagnosesOf('ffmpeg');
  const named = (wanted: (item: CodecModuleItem) => boolean): string[] => [
    ...new Set(modules.filter((item) => !item.isHwAccel && wanted(item)).flatMap(({ supportedCodecs }) => supportedCodecs)),
  ];
  const [encodes, decodes] = [named(({ isEncoder }) => isEncoder), named(({ isDecoder }) => isDecoder)];
  const text = `FFmpeg ${version} of node-av, no ffmpeg program is needed; encodes ${encodes.join(', ')}; decodes ${decodes.join(', ')}`;
  const missing = ['H264', 'AAC', 'OPUS'].filter((codec) => !encodes.includes(codec));
  return missing.length === 0
    ? ok(text)
    : warning(`${text}; it cannot encode ${missing.join(', ')}`, 'use the FFmpeg build that comes with node-av');
}

function gpu(modules: readonly CodecModuleItem[]): Diagnosis {
  const { ok } = diagnosesOf('gpu');
  const found = modules.filter(({ isHwAccel }) => isHwAccel);
  if (found.length === 0) return ok('none that FFmpeg can use: the CPU encodes everything');
  const use = ({ displayName, busId, isEncoder, isDecoder, supportedCodecs }: CodecModuleItem): string => {
    const verbs = [...(isEncoder ? ['encodes'] : []), ...(isDecoder ? ['decodes'] : [])].join(' and ');
    return `${displayName}${busId === '-' ? '' : ` at ${busId}`} ${verbs} ${supportedCodecs.join(', ')}`;
  };
  return ok(found.map(use).join('; '));
}

/** Collects the warnings. */
function collecting(said: string[]): Logger {
  const keep = (_fields: object, message: string): void => {
    said.push(message);
  };
  const nothing = (): void => undefined;
  const logger: Logger = {
    ...{ debug: nothing, info: nothing, warn: keep, error: keep },
    child: () => logger,
    get limited() {
      return logger;
    },
  };
  return logger;
}
