/** Types of the API's answers as the console reads them, and URLs from them. */

/** Ports without and with TLS. */
export interface PortPair {
  readonly port?: number;
  readonly tlsPort?: number;
}

/** `GET /v1/server`. */
export interface ServerFacts {
  readonly providers: { readonly rtmp?: PortPair; readonly srt?: readonly number[]; readonly webrtc?: PortPair };
  readonly publishers: {
    readonly llhls?: PortPair;
    readonly hls?: PortPair;
    readonly thumbnail?: PortPair;
    readonly webrtc?: PortPair;
    readonly srt?: readonly number[];
  };
  /** Whether the token allows changes. */
  readonly mayWrite: boolean;
  readonly readOnlyVirtualHosts: readonly string[];
}

/** Statistics of version 1. `last…` are bytes of an interval that is a second or longer, and so no rate. */
export interface Statistics {
  /** bit/s over the last interval. */
  readonly avgThroughputIn: number;
  readonly avgThroughputOut: number;
  readonly connections: Readonly<Record<string, number>>;
  readonly createdTime: string;
  readonly lastRecvTime: string;
  readonly totalBytesIn: number;
  readonly totalBytesOut: number;
  readonly totalConnections: number;
  readonly maxTotalConnections: number;
}

/** A track of a stream. */
export interface TrackInformation {
  readonly id: number;
  readonly name: string;
  readonly type: string;
  readonly video?: {
    readonly codec: string;
    readonly width: number;
    readonly height: number;
    readonly bitrateLatest: string;
    readonly framerateLatest: number;
    readonly framerateAvg: number;
    readonly keyFrameIntervalLatest: number;
    readonly hasBframes: boolean;
    readonly bypass: boolean;
  };
  readonly audio?: {
    readonly codec: string;
    readonly samplerate: number;
    readonly channel: number;
    readonly bitrateLatest: string;
    readonly bypass: boolean;
  };
}

/** `GET …/streams/{stream}`. */
export interface StreamInformation {
  readonly name: string;
  readonly input: {
    readonly createdTime: string;
    readonly sourceType: string;
    readonly sourceUrl?: string;
    readonly tracks: readonly TrackInformation[];
  };
  readonly outputs: readonly {
    readonly name: string;
    readonly playlists: readonly {
      readonly name: string;
      readonly fileName: string;
      readonly options: { readonly enableTsPackaging?: boolean };
    }[];
    readonly tracks: readonly TrackInformation[];
    readonly warnings?: readonly string[];
  }[];
}

/** The host of this page in the form of URLs: the browser reaches the server by this name. */
export function addressHost(): string {
  return location.hostname;
}

/**
 * `scheme://host:port`, with TLS if the page was loaded with TLS, because such a page may not load anything without; null if no usable port
 * is open.
 */
export function originOf(pair: PortPair | undefined, [plain, secure]: readonly [string, string] = ['http', 'https']): string | null {
  const isSecure = location.protocol === 'https:';
  const port = isSecure ? pair?.tlsPort : pair?.port;
  if (port !== undefined) return `${isSecure ? secure : plain}://${addressHost()}:${port}`;
  return !isSecure && pair?.tlsPort !== undefined ? `${secure}://${addressHost()}:${pair.tlsPort}` : null;
}
