/** Arguments and results of each call of the client, derived from the types that are generated from the OpenAPI document. */
import type { paths } from './openapi-types.ts';

/** Methods of the API, as the document writes them. */
export type CallMethod = 'get' | 'post' | 'patch' | 'delete';

/** Streamed answers; a call needs an answer that ends. */
interface Streamed {
  readonly responses: { readonly 200: { readonly content: { readonly 'text/event-stream': unknown } } };
}

/** The paths with this method and an answer that ends. */
export type PathOf<M extends CallMethod> = {
  [P in keyof paths]: paths[P][M] extends Streamed ? never : paths[P][M] extends { responses: unknown } ? P : never;
}[keyof paths];

type Operation<M extends CallMethod, P extends PathOf<M>> = paths[P][M];
type Json<C> = C extends { content: { 'application/json': infer B } } ? B : C extends { content: { 'text/plain': infer T } } ? T : never;

/** Options of any call. */
export interface CallSettings {
  /** Ends the call; it rejects with the reason of the signal. */
  readonly signal?: AbortSignal;
  /** Time limit for the whole answer, ms; default: the client's. */
  readonly timeout?: number;
}

type PathOptions<O> = O extends { parameters: { path: infer N } } ? { readonly path: Readonly<N> } : unknown;
type QueryOptions<O> = O extends { parameters: { query?: infer Q } }
  ? [Q] extends [undefined]
    ? unknown
    : { readonly query?: Q }
  : unknown;
type BodyOptions<O> = O extends { requestBody: infer B }
  ? { readonly body: Json<B> }
  : O extends { requestBody?: infer B }
    ? [B] extends [undefined]
      ? unknown
      : { readonly body?: Json<B> }
    : unknown;

/** Names of the path, query and body of a call. */
export type CallOptions<M extends CallMethod, P extends PathOf<M>> = PathOptions<Operation<M, P>> &
  QueryOptions<Operation<M, P>> &
  BodyOptions<Operation<M, P>> &
  CallSettings;

/** The options, which are optional if none of them is required. */
export type CallArguments<M extends CallMethod, P extends PathOf<M>> =
  // biome-ignore lint/complexity/noBannedTypes: an object without required members is what is asked for
  {} extends CallOptions<M, P> ? [options?: CallOptions<M, P>] : [options: CallOptions<M, P>];

type Success<O> = O extends { responses: infer R } ? Json<R[keyof R & (200 | 201)]> : never;
type Content<E> = E extends { statusCode: number; response: infer R } ? R : E extends { statusCode: number } ? undefined : E;

/** The result of a call: `response` of the envelope, a list of them for a batch, or the whole body if there is no envelope. */
export type CallResult<M extends CallMethod, P extends PathOf<M>> =
  Success<Operation<M, P>> extends readonly (infer E)[] ? Content<E>[] : Content<Success<Operation<M, P>>>;
