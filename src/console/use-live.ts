/** Data that a page reloads periodically. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { type Fault, faultOf } from './api-client.ts';
import type { LiveUpdates, Topic } from './live-updates.ts';

/** The last loaded data, and the error of the newest attempt. */
export interface Live<T> {
  readonly data: T | null;
  readonly fault: Fault | null;
  /** Reloads now. */
  readonly refresh: () => void;
}

/**
 * Loads now and at each tick of `updates`, one request at a time. A new `key` names another object: the data of the old one is dropped.
 */
export function useLive<T>(updates: LiveUpdates, key: string, load: () => Promise<T>, topic: Topic = 'figures'): Live<T> {
  const [state, setState] = useState<{ key: string; data: T | null; fault: Fault | null }>({ key, data: null, fault: null });
  const again = useRef<() => void>(() => {});
  const newest = useRef(load);
  newest.current = load;
  useEffect(() => {
    let isOver = false;
    let isLoading = false;
    let isStale = false;
    const look = async (): Promise<void> => {
      // The pending answer may miss a change that happened after its request.
      isStale = isLoading;
      if (isLoading) return;
      isLoading = true;
      try {
        const data = await newest.current();
        if (!isOver) setState({ key, data, fault: null });
      } catch (error) {
        const fault = faultOf(error);
        if (!isOver) setState((before) => ({ key, data: before.key === key ? before.data : null, fault }));
      } finally {
        isLoading = false;
      }
      if (isStale && !isOver && topic === 'names') void look();
    };
    again.current = () => void look();
    void look();
    const leave = updates.follow(() => void look(), topic);
    return () => {
      isOver = true;
      leave();
    };
  }, [updates, key]);
  return { data: state.key === key ? state.data : null, fault: state.key === key ? state.fault : null, refresh: () => again.current() };
}
