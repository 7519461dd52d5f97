/** Child process of `abuse`: many hostile peers of a kind, until it is told to stop. */
import os from 'node:os';
import { HOSTILE_KINDS, type HostilePeer, type HostilePorts } from './hostile-kinds.ts';

export type HostileOrder =
  | { readonly type: 'attack'; readonly kind: string; readonly ports: HostilePorts; readonly count: number }
  | { readonly type: 'stop' };
/** Answer to `stop`: the number of peers that the server had not ended. */
export interface HostileAnswer {
  readonly open: number;
}

/** The peers arrive in this many steps within a second. */
const STEPS = 50;
const STEP_MS = 20;
/** The parent process may have ended silently. */
const MAX_MS = 300_000;

/** Attackers normally run on other machines. */
const NICE = 5;

const peers: HostilePeer[] = [];
let opening: NodeJS.Timeout | null = null;

os.setPriority(os.getPriority() + NICE);
process.on('message', (order: HostileOrder) => {
  if (order.type === 'attack') attack(order.kind, order.ports, order.count);
  else stop();
});
process.once('disconnect', () => process.exit());
setTimeout(() => process.exit(1), MAX_MS).unref();

function attack(name: string, ports: HostilePorts, count: number): void {
  const kind = HOSTILE_KINDS[name];
  if (kind === undefined) throw new TypeError(`there is no kind ${name}`);
  opening = setInterval(() => {
    for (let left = Math.ceil(count / STEPS); left > 0 && peers.length < count; left -= 1) peers.push(kind.open(ports, peers.length));
    if (peers.length >= count) clearInterval(opening ?? undefined);
  }, STEP_MS);
}

function stop(): void {
  clearInterval(opening ?? undefined);
  const open = peers.filter((peer) => peer.isOpen()).length;
  for (const peer of peers) peer.close();
  process.send?.({ open } satisfies HostileAnswer, () => process.exit());
}
