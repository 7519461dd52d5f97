/** `millrace/client`: the management API for programs, in Node.js and in browsers, with types made from its OpenAPI document. */
export type { CallArguments, CallMethod, CallOptions, CallResult, CallSettings, PathOf } from './call-types.ts';
export { type ClientOptions, MillraceClient, type RequestOptions, type ServerAnswer } from './client.ts';
export { type ItemAnswer, isFailure, MillraceError, UnreachableError } from './error.ts';
export type { EventOptions, FollowOptions, LiveEvent, LogEvent, LogOptions } from './event-stream.ts';
export type { components, operations, paths } from './openapi-types.ts';
export { protocolName, VIEWER_KINDS, viewersOf } from './words.ts';
