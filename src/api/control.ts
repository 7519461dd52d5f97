/** What the API needs of the server behind it. */
import type { StreamFigures } from '../monitoring/stream-info.ts';
import type { TrafficFigures } from '../monitoring/traffic-figures.ts';
import type { QueueStatus } from '../util/bounded-queue.ts';
import type { JsonObject } from './json/json-value.ts';

/** An inbound stream as the API sees it. */
export interface StreamView extends StreamFigures {
  readonly meter: TrafficFigures;
}

/** An application as the API sees it. */
export interface ApplicationView {
  readonly name: string;
  /** `#<vhost>#<app>`. */
  readonly internalName: string;
  /** Made from a template, not declared. */
  readonly dynamic: boolean;
  /** What was configured, member by member, as it is printed. */
  readonly definition: JsonObject;
  readonly meter: TrafficFigures;
  /** Inbound streams in the order they came. */
  readonly streams: Iterable<StreamView>;
  findStream(name: string): StreamView | undefined;
}

/** A virtual host as the API sees it. */
export interface VirtualHostView {
  readonly name: string;
  /** Declared in the server configuration file. */
  readonly readOnly: boolean;
  /** What was configured, without `applications`. */
  readonly definition: JsonObject;
  readonly meter: TrafficFigures;
  /** In the order they were created. */
  readonly applications: Iterable<ApplicationView>;
  findApplication(name: string): ApplicationView | undefined;
}

/** Why the control plane refused; `code` is stable, `message` is for the client when the code is `config`. */
export class ChangeRefused extends Error {
  override readonly name = 'ChangeRefused';
  readonly code: 'config' | 'exists' | 'failed';
  constructor(code: ChangeRefused['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * The server as the API drives it. Changes resolve only when they are durable; they reject with
 * `ChangeRefused` and then nothing has changed, unless said otherwise.
 */
export interface ControlPlane {
  /** The whole server. */
  readonly meter: TrafficFigures;
  /** In the order they were created. */
  readonly virtualHosts: Iterable<VirtualHostView>;
  findVirtualHost(name: string): VirtualHostView | undefined;
  queueStatuses(): Iterable<QueueStatus>;
  /** Creates a virtual host and the `applications` inside the definition; `failed` when one of these cannot be created. */
  createVirtualHost(definition: JsonObject): Promise<VirtualHostView>;
  /** Ends everything inside. */
  deleteVirtualHost(vhost: string): Promise<void>;
  createApplication(vhost: string, definition: JsonObject): Promise<ApplicationView>;
  /** Restarts an application with another definition: validated first, then all its sessions are closed. */
  replaceApplication(vhost: string, app: string, definition: JsonObject): Promise<ApplicationView>;
  deleteApplication(vhost: string, app: string): Promise<void>;
  /** Terminates an inbound stream: its connection is closed. */
  deleteStream(vhost: string, app: string, stream: string): Promise<void>;
  /** Loads the certificate files of one virtual host again, or of all; keeps the old ones and rejects when that fails. */
  reloadCertificates(vhost?: string): Promise<void>;
}
