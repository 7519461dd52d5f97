/** Media ports by protocol, for publishers and viewers. */
import type { ServerConfig } from '../config/index.ts';
import { portsOf } from '../config/server-config.ts';
import type { PageSettings } from '../pages/player-page.ts';
import type { MediaPorts } from './console-site.ts';

/** Ports of a service with and without TLS; closed ports are absent. */
export interface PortPair {
  readonly port?: number;
  readonly tlsPort?: number;
}

/** Ports by direction and protocol; protocols without a listener are absent. */
export interface Listeners {
  readonly providers: {
    readonly rtmp?: PortPair;
    readonly srt?: readonly number[];
    readonly webrtc?: PortPair;
  };
  readonly publishers: {
    readonly llhls?: PortPair;
    readonly hls?: PortPair;
    readonly thumbnail?: PortPair;
    readonly webrtc?: PortPair;
    readonly srt?: readonly number[];
  };
}

/** Listeners of a server without media ports. */
export const NO_LISTENERS: Listeners = { providers: {}, publishers: {} };

/** Listeners of the configuration. */
export function listenersOf({ bind, modules }: ServerConfig): Listeners {
  const { rtmp, srt: srtIn, webrtc: ingest } = bind.providers;
  const { llhls, hls, thumbnail, srt: srtOut, webrtc } = bind.publishers;
  return {
    providers: {
      ...(rtmp !== undefined && { rtmp: pairOf(rtmp) }),
      ...(srtIn !== undefined && { srt: portsOf(srtIn.port) }),
      ...(ingest?.signalling !== undefined && { webrtc: pairOf(ingest.signalling) }),
    },
    publishers: {
      ...(llhls !== undefined && modules.llhls.enable && { llhls: pairOf(llhls) }),
      ...(hls !== undefined && { hls: pairOf(hls) }),
      ...(thumbnail !== undefined && { thumbnail: pairOf(thumbnail) }),
      ...(webrtc?.signalling !== undefined && { webrtc: pairOf(webrtc.signalling) }),
      ...(srtOut !== undefined && { srt: portsOf(srtOut.port) }),
    },
  };
}

/** Facts for the pages of media ports. */
export function pagesOf(config: ServerConfig): PageSettings {
  const { publishers } = listenersOf(config);
  const { api } = config.bind.managers;
  return {
    player: config.modules.playerPage.enable,
    ...(publishers.webrtc !== undefined && { webrtc: publishers.webrtc }),
    ...(publishers.llhls !== undefined && { llhls: publishers.llhls }),
    ...(api !== undefined && { console: pairOf(api) }),
  };
}

/** The ports that a page in a browser can use. */
export function mediaPorts({ providers, publishers }: Listeners): MediaPorts {
  const pairs = [providers.webrtc, publishers.llhls, publishers.hls, publishers.thumbnail, publishers.webrtc];
  const known = (port: number | undefined): readonly number[] => (port === undefined ? [] : [port]);
  return {
    // The console requests the RTMP port to test whether it is reachable.
    plain: [...new Set([...pairs, providers.rtmp].flatMap((pair) => known(pair?.port)))],
    tls: [...new Set(pairs.flatMap((pair) => known(pair?.tlsPort)))],
  };
}

function pairOf({ port, tlsPort }: { readonly port?: number | undefined; readonly tlsPort?: number | undefined }): PortPair {
  return { ...(port !== undefined && { port }), ...(tlsPort !== undefined && { tlsPort }) };
}
