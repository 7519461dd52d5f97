/** Follows the server's events while the console is open. */
import type { LiveEvent, MillraceClient } from '../client/index.ts';

/** Receives all events. */
export interface EventListener {
  heard(event: LiveEvent): void;
  /** True: events arrive from now on; false: they do not. */
  told(isTold: boolean): void;
}

const RETRY_MS = 5000;
/** Earlier events to request, for the time before the console was opened. */
const MAX_BACK = 1000;

/** Follows until the returned function is called, and reconnects after every break. */
export function watchEvents(client: MillraceClient, listener: EventListener): () => void {
  const end = new AbortController();
  const run = async (): Promise<void> => {
    for (let back: number = MAX_BACK; !end.signal.aborted; back = 0) {
      try {
        for await (const event of client.events({ back, signal: end.signal, onLost: () => listener.told(false) })) {
          listener.told(true);
          listener.heard(event);
        }
      } catch {
        // Until the reconnection, data is polled.
      }
      if (end.signal.aborted) return;
      listener.told(false);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  };
  void run();
  return () => end.abort();
}
