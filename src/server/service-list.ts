import type { PublisherKind } from '../core/kinds.ts';
import type { Publisher } from '../core/publishing.ts';
import type { PullSource } from '../core/pull.ts';
import type { Service } from '../services/service.ts';

/** The services of a server in the order of their start, and the publishers and pull sources that they provide. Closes none of them. */
export class ServiceList {
  readonly all: Service[] = [];
  readonly publishers = new Map<PublisherKind, Publisher>();
  readonly sources: PullSource[] = [];

  add(service: Service): void {
    this.all.push(service);
    for (const publisher of service.publishers ?? []) this.publishers.set(publisher.kind, publisher);
    this.sources.push(...(service.pullSources ?? []));
  }
}
