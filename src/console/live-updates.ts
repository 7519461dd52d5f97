/** When it is time to look again. What is on show asks for what it needs. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiFault } from './api-client.ts';

/** Tells whoever follows that something may have changed. */
export interface LiveUpdates {
  /** Calls `listener` until the function returned is called. */
  follow(listener: () => void): () => void;
}

const EVERY_MS = 2000;

/** A clock that stands still while nobody looks at the page. */
export class PolledUpdates implements LiveUpdates {
  readonly #listeners = new Set<() => void>();
  #timer = 0;

  follow(listener: () => void): () => void {
    this.#listeners.add(listener);
    if (this.#timer === 0) this.#timer = setInterval(() => this.#tick(), EVERY_MS);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = 0;
    };
  }

  #tick(): void {
    if (document.hidden) return;
    for (const listener of this.#listeners) listener();
  }
}

/** What was loaded last, and why the newest try failed. */
export interface Live<T> {
  readonly data: T | null;
  readonly fault: ApiFault | null;
  /** Looks again now. */
  readonly refresh: () => void;
}

/** Loads now, and again whenever `updates` says so, one at a time. Another `key` is another thing: what was loaded is dropped. */
export function useLive<T>(updates: LiveUpdates, key: string, load: () => Promise<T>): Live<T> {
  const [state, setState] = useState<{ key: string; data: T | null; fault: ApiFault | null }>({ key, data: null, fault: null });
  const again = useRef<() => void>(() => {});
  const newest = useRef(load);
  newest.current = load;
  useEffect(() => {
    let isOver = false;
    let isLoading = false;
    const look = async (): Promise<void> => {
      if (isLoading) return;
      isLoading = true;
      try {
        const data = await newest.current();
        if (!isOver) setState({ key, data, fault: null });
      } catch (error) {
        const fault = error instanceof ApiFault ? error : new ApiFault(0, String(error));
        if (!isOver) setState((before) => ({ key, data: before.key === key ? before.data : null, fault }));
      } finally {
        isLoading = false;
      }
    };
    again.current = () => void look();
    void look();
    const leave = updates.follow(() => void look());
    return () => {
      isOver = true;
      leave();
    };
  }, [updates, key]);
  return { data: state.key === key ? state.data : null, fault: state.key === key ? state.fault : null, refresh: () => again.current() };
}
