/** Follows `GET /v1/events`: by `fetch`, for `EventSource` cannot send a token. */
import type { ApiClient } from './api-client.ts';

/** What happened, with the members that the console reads. */
export interface LiveEvent {
  readonly type: string;
  readonly time?: string;
  readonly vhost?: string;
  readonly app?: string;
  readonly stream?: string;
  readonly session?: string;
  readonly publisher?: string;
  readonly reason?: string;
  readonly detail?: string;
  readonly seconds?: number;
  readonly bytes?: number;
  readonly task?: string;
  readonly id?: string;
  readonly state?: string;
  readonly direction?: string;
  readonly protocol?: string;
  readonly count?: number;
}

/** Told of everything that happens. */
export interface EventListener {
  heard(event: LiveEvent): void;
  /** The server tells what happens from now on, or does not any more. */
  told(isTold: boolean): void;
}

const RETRY_MS = 5000;
/** Longer blocks are no events of ours. */
const MAX_BLOCK = 1 << 20;

/** Follows until the function returned is called, and comes back after every break. */
export function followEvents(client: ApiClient, listener: EventListener): () => void {
  const end = new AbortController();
  const run = async (): Promise<void> => {
    let last: string | null = null;
    while (!end.signal.aborted) {
      try {
        const body = await client.events(last, end.signal);
        listener.told(true);
        for await (const block of blocksOf(body)) {
          last = fieldOf(block, 'id') ?? last;
          const data = fieldOf(block, 'data');
          if (data !== null) listener.heard(JSON.parse(data) as LiveEvent);
        }
      } catch {
        // Looked at by the clock until it comes back.
      }
      if (end.signal.aborted) return;
      listener.told(false);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  };
  void run();
  return () => end.abort();
}

async function* blocksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      const blocks = (text + decoder.decode(next.value, { stream: true })).split('\n\n');
      text = blocks.pop() ?? '';
      if (text.length > MAX_BLOCK) throw new Error('an event is too long');
      yield* blocks;
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

function fieldOf(block: string, name: string): string | null {
  return (
    block
      .split('\n')
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2) ?? null
  );
}
