/** Recordings of the application `app` through the API, and their files. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { apiPath } from './api-client.ts';
import { until } from './poll.ts';
import { type StartOptions, startServer, type TestServer } from './server.ts';

const APP = apiPath.app('default', 'app');

/** The members of a recording task that tests read. */
export interface RecordTask {
  readonly id: string;
  readonly state: string;
  readonly reason?: string;
  readonly sequence?: number;
  readonly recordTime?: number;
  readonly totalRecordBytes?: number;
  readonly totalRecordTime?: number;
  readonly outputFilePath?: string;
}

/** A server that records into its own folder; both end with the test. */
export async function startRecorder(options: StartOptions = {}): Promise<{ server: TestServer; root: string }> {
  const root = mkdtempSync(path.join(tmpdir(), 'millrace-recorded-'));
  const server = await startServer({ ...options, recordRoot: root });
  onTestFinished(async () => {
    await server.close();
    rmSync(root, { recursive: true, force: true });
  });
  return { server, root };
}

/** Stops an encoder at the end of the test. */
export function stopAtEnd<T extends { stop(): Promise<unknown> }>(encoder: T): T {
  onTestFinished(async () => {
    await encoder.stop();
  });
  return encoder;
}

/** Starts a task for the stream `live`. */
export async function record(server: TestServer, id: string, filePath: string, more: object = {}): Promise<RecordTask> {
  const { status, body } = await server.api.call('POST', `${APP}:startRecord`, {
    id,
    stream: { name: 'live' },
    filePath,
    infoPath: '/info.xml',
    ...more,
  });
  expect(status, JSON.stringify(body)).toBe(200);
  return (body as { response: RecordTask }).response;
}

export async function stopRecord(server: TestServer, id: string): Promise<RecordTask> {
  const { status, body } = await server.api.call('POST', `${APP}:stopRecord`, { id });
  expect(status, JSON.stringify(body)).toBe(200);
  return (body as { response: RecordTask }).response;
}

export async function tasks(server: TestServer): Promise<RecordTask[]> {
  return await server.api.get<RecordTask[]>(`${APP}:records`);
}

export async function task(server: TestServer, id: string): Promise<RecordTask | undefined> {
  return (await tasks(server)).find((one) => one.id === id);
}

/** Recorded files with their final names, as paths in `root`. */
export function media(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(mp4|ts)$/.test(name) && !path.basename(name).startsWith('tmp_'))
    .sort();
}

/** Recorded files without their final names. */
export function unfinished(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => path.basename(name).startsWith('tmp_'));
}

export async function finished(root: string, names: readonly string[]): Promise<void> {
  await until(
    `${names.join(', ')} are finished`,
    () => unfinished(root).length === 0 && names.every((name) => existsSync(path.join(root, name))),
  );
}
