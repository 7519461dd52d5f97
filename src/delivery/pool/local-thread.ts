/** A delivery thread in the main thread itself, for small machines and tests. Loaded on demand: it imports most of `delivery/`. */
import type { Clock } from '../../util/clock.ts';
import type { ViewFactories } from '../feed/view.ts';
import { DeliveryThread } from '../thread/delivery-thread.ts';
import type { ThreadSettings } from '../thread-protocol.ts';
import type { ThreadLink, ThreadLinkOwner } from './thread-link.ts';

/** Messages are delivered in a later microtask, in order, as between threads; payloads are not copied. */
export function startLocal(views: ViewFactories, clock: Clock, settings: ThreadSettings, owner: ThreadLinkOwner): ThreadLink {
  let open = true;
  const end = (reason: string): void => {
    if (!open) return;
    open = false;
    owner.exited(reason);
  };
  const thread = new DeliveryThread({
    settings,
    views,
    clock,
    post: (message) => {
      queueMicrotask(() => {
        if (!open) return;
        owner.message(message);
        if (message.type === 'stopped') end('stopped');
      });
    },
  });
  return {
    post: (messages) => queueMicrotask(() => thread.receive(messages)),
    terminate: async () => {
      thread.receive([{ type: 'stop' }]);
      end('terminated');
    },
  };
}
