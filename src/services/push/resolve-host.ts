import { lookup } from 'node:dns/promises';
import { messageOf } from '../../util/message-of.ts';
import { PushFailure } from './push-failure.ts';

/** The address to send datagrams to. Rejects with `PushFailure`. */
export async function resolveHost(host: string): Promise<{ readonly address: string; readonly family: 4 | 6 }> {
  try {
    const { address, family } = await lookup(host);
    return { address, family: family === 6 ? 6 : 4 };
  } catch (error) {
    throw new PushFailure('unreachable', `cannot resolve ${host}: ${messageOf(error)}`);
  }
}
