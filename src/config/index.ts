/** Configuration: from `Server.xml` or the API's JSON to one typed tree. */

export { parseAlertRules } from './alert-rules-file.ts';
export { changeSentence, configChangeSteps, configChanges, followedSteps } from './changes.ts';
export { type JsonSchema, jsonSchemaOf } from './json-schema.ts';
export type { MacroSource } from './macros.ts';
export { mergePatch } from './merge-patch.ts';
export { type MpegtsPortUser, sharedMpegtsPort } from './mpegts-ports.ts';
export { ConfigError, ConfigErrors, type ConfigWarning, formatConfigProblem, type Place } from './problem.ts';
export type { Echo, EchoObject } from './reader.ts';
export {
  applicationDefaults,
  type ReadOptions,
  type Resource,
  readApplication,
  readOutputProfile,
  readOutputProfiles,
  readVirtualHost,
  type VirtualHostResource,
  virtualHostSteps,
} from './resources.ts';
export type { AdmissionWebhooksConfig, SignedPolicyConfig } from './schema/access.ts';
export {
  type AccessKeyConfig,
  AccessKeySchema,
  KEY_LISTS,
  type KeyList,
  keySalt,
  MAX_ACCESS_KEYS,
  useKeySalt,
} from './schema/access-keys.ts';
export type { AlertConfig, AlertRulesConfig } from './schema/alert.ts';
export { type ApplicationConfig, ApplicationSchema, type StandInConfig, type TranscodeWebhookConfig } from './schema/application.ts';
export type { BindApiConfig, BindConfig } from './schema/bind.ts';
export type { CrossDomainsConfig } from './schema/cross-domains.ts';
export type {
  BypassIfMatchConfig,
  EncodeAudioConfig,
  EncodeImageConfig,
  EncodesConfig,
  EncodeVideoConfig,
} from './schema/encodes.ts';
export type { PortRanges } from './schema/field.ts';
export type { CacheControlConfig, DvrConfig, HlsDumpConfig } from './schema/hls.ts';
export type { ManagersConfig } from './schema/managers.ts';
export type { MediaOptionsConfig, SubtitlesConfig } from './schema/media-options.ts';
export type { ModulesConfig } from './schema/modules.ts';
export type { OriginMapStoreConfig, RedisServerConfig } from './schema/origin-map-store.ts';
export { type OutputProfileConfig, OutputProfileSchema, type OutputProfilesConfig } from './schema/output-profile.ts';
export {
  type AudioTemplateConfig,
  type PlaylistConfig,
  type PlaylistOptionsConfig,
  PlaylistSchema,
  type RenditionConfig,
  type RenditionTemplateConfig,
  type VideoTemplateConfig,
} from './schema/playlist.ts';
export type {
  AudioMapConfig,
  FileProviderConfig,
  MpegtsProviderConfig,
  ProvidersConfig,
  RtmpProviderConfig,
  SrtProviderConfig,
  WebrtcProviderConfig,
} from './schema/providers.ts';
export type {
  FilePublisherConfig,
  HlsConfig,
  LlhlsConfig,
  PublishersConfig,
  PushPublisherConfig,
  WebrtcPublisherConfig,
} from './schema/publishers.ts';
export { type ServerConfig, ServerSchema } from './schema/server.ts';
export type { TlsConfig } from './schema/tls.ts';
export {
  type HostConfig,
  type OriginConfig,
  type OriginsConfig,
  type VirtualHostConfig,
  VirtualHostSchema,
} from './schema/virtual-host.ts';
export { repeatedSecrets, sealed, secretSteps, secretsOf } from './secrets.ts';
export { defaultServerFile, defaultServerXml, type LoadedServer, loadServerConfig, parseServerConfig } from './server-file.ts';
export type { ChangeEffect, SettingChange } from './setting-change.ts';
