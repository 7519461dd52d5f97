/**
 * Events that the server makes itself, as a service: SEI and AMF events of an application, by the rules file that `EventGenerator` names.
 *
 * `event-rules.ts` reads the file when the application starts; an `EventGenerator` puts events onto its streams until the application ends.
 * The core distributes them.
 *
 * Threads: the main one; a timer for each rule.
 * Limits: 64 enabled rules a file, texts of 16,384 characters, one event of a rule in 20 ms, and the limits of each stream
 * (`core/event-injector.ts`).
 * Specifications: none; `docs/guide/events.md`, *Events that the server makes*, documents the file.
 */
import { readXmlFile } from '../../config/xml-thread.ts';
import type { Application } from '../../core/application.ts';
import { counted } from '../../util/counted.ts';
import { messageOf } from '../../util/message-of.ts';
import type { Service, ServiceContext } from '../service.ts';
import { EventGenerator } from './event-generator.ts';
import { parseEventRules } from './event-rules.ts';

/** Generators for all applications that ask for one. */
export function startEvents({ clock, logger: parent }: Pick<ServiceContext, 'clock' | 'logger'>): Service {
  const logger = parent.child({ service: 'events' });
  const generators = new Set<EventGenerator>();
  let isOver = false;
  const start = async (application: Application, file: string): Promise<void> => {
    const { vhost, name: app } = application;
    try {
      const rules = parseEventRules(await readXmlFile(file, logger));
      if (isOver || application.closed) return;
      for (const generator of generators) if (generator.sweep()) generators.delete(generator);
      generators.add(new EventGenerator(rules, application, { clock, logger: logger.child({ vhost, app }) }));
      logger.info({ vhost, app, file, rules: rules.length }, `events are made by ${counted(rules.length, 'rule')} of ${file}`);
    } catch (error) {
      logger.error({ vhost, app, file }, `no events are made: ${messageOf(error)}`);
    }
  };
  return {
    applicationStarted: (application) => {
      const { eventGenerator } = application.definition.config;
      if (eventGenerator?.enable !== true) return;
      if (eventGenerator.path !== undefined) void start(application, eventGenerator.path);
      else logger.error({ vhost: application.vhost, app: application.name }, 'no events are made: EventGenerator/Path is missing');
    },
    close: async () => {
      isOver = true;
      for (const generator of generators) generator.close();
      generators.clear();
    },
  };
}
