import type { JsonObject } from '../json/json-value.ts';

/**
 * Fills in what an application created through the API gets when the member is not given at all
 * (a member given as null stays without).
 */
export function withApplicationDefaults(definition: JsonObject): JsonObject {
  return { ...defaults(), ...definition };
}

function defaults(): JsonObject {
  return {
    outputProfiles: { outputProfile: [defaultProfile()] },
    providers: { ovt: {}, rtmp: {}, rtspPull: {}, srt: {}, webrtc: {} },
    publishers: { llhls: {}, ovt: {}, webrtc: {} },
  };
}

function defaultProfile(): JsonObject {
  return {
    name: 'default',
    outputStreamName: '${OriginStreamName}',
    encodes: {
      videos: [{ name: 'bypass_video', bypass: true }],
      audios: [audio('opus'), audio('aac')],
    },
  };
}

function audio(codec: string): JsonObject {
  return { name: codec, codec, samplerate: 48_000, bitrate: 128_000, channel: 2, bypassIfMatch: { codec: 'eq' } };
}
