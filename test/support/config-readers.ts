/** Readers of small configurations, for tests of single members. */
import {
  type ApplicationConfig,
  ConfigError,
  ConfigErrors,
  type EncodesConfig,
  type OutputProfileConfig,
  parseServerConfig,
  readApplication,
  readOutputProfile,
  readVirtualHost,
  type ServerConfig,
  type VirtualHostConfig,
} from '../../src/config/index.ts';

/** A minimal application with these members. */
export function application(members: object): ApplicationConfig {
  return readApplication({ name: 'app', type: 'live', ...members }).typed;
}

/** A minimal virtual host with these members. */
export function virtualHost(members: object): VirtualHostConfig {
  return readVirtualHost({ name: 'v', ...members }).typed;
}

/** A minimal output profile with these members. */
export function profile(members: object): OutputProfileConfig {
  return readOutputProfile({ name: 'p', outputStreamName: 'o', ...members }).typed;
}

/** The encodes of a profile with these members. */
export function encodes(members: object): EncodesConfig {
  return profile({ encodes: members }).encodes;
}

/** Reads a profile with a video encode that has these members. */
export const video = (members: object) => () => encodes({ videos: [{ codec: 'h264', bitrate: 1, ...members }] });
/** Reads a profile with a playlist that has these members. */
export const playlist = (members: object) => () => profile({ playlists: [{ fileName: 'f', ...members }] });
/** Reads an application with these subtitles. */
export const subtitles = (members: object) => () => application({ outputProfiles: { mediaOptions: { subtitles: members } } });

/** The configuration of a server file with these elements. */
export function server(inner: string): ServerConfig {
  return parseServerConfig(`<Server version="8"><Type>origin</Type><IP>*</IP>${inner}</Server>`, 'Server.xml', {}).config;
}

/** Text of a reader's error; `accepted` without an error. */
export function messageOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    if (error instanceof ConfigErrors) return error.errors[0]?.message ?? '';
    throw error;
  }
  return 'accepted';
}
