/** Follows what the server tells, for as long as the console is open. */
import type { LiveEvent, MillraceClient } from '../client/index.ts';

/** Told of everything that happens. */
export interface EventListener {
  heard(event: LiveEvent): void;
  /** The server tells what happens from now on, or does not any more. */
  told(isTold: boolean): void;
}

const RETRY_MS = 5000;
/** What happened before the console was opened is told, too. */
const BACK = 1000;

/** Follows until the function returned is called, and comes back after every break. */
export function followEvents(client: MillraceClient, listener: EventListener): () => void {
  const end = new AbortController();
  const run = async (): Promise<void> => {
    for (let back: number = BACK; !end.signal.aborted; back = 0) {
      try {
        for await (const event of client.events({ back, signal: end.signal, onLost: () => listener.told(false) })) {
          listener.told(true);
          listener.heard(event);
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
