/** Push tasks of the application `app` through the API. */
import type { ApiClient } from './api-client.ts';

const APP = '/v1/vhosts/default/apps/app';

/** The members of a push task that tests read. */
export interface PushTask {
  readonly id: string;
  readonly state: string;
  readonly reason?: string;
  readonly isConfig: boolean;
  readonly sequence: number;
  readonly sentBytes: number;
  readonly totalsentBytes: number;
  readonly url: string;
  readonly streamKey?: string;
}

export interface NewPush {
  readonly id: string;
  readonly stream: string;
  readonly variantNames?: readonly string[];
  readonly protocol: string;
  readonly url: string;
  readonly streamKey?: string;
}

export async function startPush(api: ApiClient, { stream, variantNames = [], ...rest }: NewPush): Promise<void> {
  await api.create(`${APP}:startPush`, { ...rest, stream: { name: stream, variantNames } });
}

export async function stopPush(api: ApiClient, id: string): Promise<void> {
  await api.create(`${APP}:stopPush`, { id });
}

export async function pushes(api: ApiClient): Promise<PushTask[]> {
  return await api.get(`${APP}:pushes`);
}
