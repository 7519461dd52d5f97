/** Looks into the memory of a process for the keys of a viewer that was closed. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createCipheriv, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { until } from '../../../../../test/harness/poll.ts';
import { loadAddon } from '../../../../native/addon.ts';
import { SrtpProfile, saltLength } from '../../../../wire/srtp/profile.ts';

const HOLDER = fileURLToPath(new URL('../../../../../test/fakes/key-holder.ts', import.meta.url));
const CHUNK = 1 << 20;

let child: ChildProcessWithoutNullStreams;

afterEach(() => {
  child.kill('SIGKILL');
});

/** RFC 3711 section 4.3. */
function derived(key: Buffer, salt: Buffer, label: number, length: number): Buffer {
  const iv = Buffer.alloc(16);
  iv.set(salt);
  iv[7] = (iv[7] ?? 0) ^ label;
  return createCipheriv('aes-128-ctr', key, iv).update(Buffer.alloc(length));
}

/** Names of those `secrets` that are in the writable memory of process `pid`. */
function found(pid: number, secrets: ReadonlyMap<string, Buffer>): string[] {
  const names = new Set<string>();
  const memory = openSync(`/proc/${pid}/mem`, 'r');
  const chunk = Buffer.alloc(CHUNK);
  for (const line of readFileSync(`/proc/${pid}/maps`, 'latin1').split('\n')) {
    const [, from = '', to = ''] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? [];
    // A secret on the edge of two chunks would be missed: the next begins a little before the end of the last.
    for (let at = Number.parseInt(from, 16); at < Number.parseInt(to, 16); at += CHUNK - 64) {
      let read = 0;
      try {
        read = readSync(memory, chunk, 0, Math.min(CHUNK, Number.parseInt(to, 16) - at), at);
      } catch {
        // Reserved without memory, or freed since the list was read.
        continue;
      }
      for (const [name, secret] of secrets) if (chunk.subarray(0, read).includes(secret)) names.add(name);
    }
  }
  closeSync(memory);
  return [...names].sort();
}

async function say(text: string): Promise<string> {
  child.stdin.write(`${text}\n`);
  const [answer] = (await once(child.stdout, 'data')) as [Buffer];
  return answer.toString().trim();
}

// Node itself copies data passed from JavaScript, and those copies are out of reach: the fallback wipes only its own. A sanitizer, which is
// loaded before node, has terabytes of its own memory.
test
  .skipIf(loadAddon().addon === null || process.env['LD_PRELOAD'] !== undefined)
  .each(Object.entries(SrtpProfile).map(([name, profile]) => ({ name, profile })))(
  'the keys of $name are wiped from memory when the viewer is closed',
  async ({ profile }) => {
    child = spawn(process.execPath, [HOLDER]);
    const length = saltLength(profile);
    const [localKey, localSalt, remoteKey, remoteSalt] = [16, length, 16, length].map((size) => randomBytes(size)) as [
      Buffer,
      Buffer,
      Buffer,
      Buffer,
    ];
    const secrets = new Map([
      ['local key', localKey],
      ['local salt', localSalt],
      ['remote key', remoteKey],
      ['remote salt', remoteSalt],
    ]);
    for (const [side, key, salt] of [['local', localKey, localSalt] as const, ['remote', remoteKey, remoteSalt] as const]) {
      for (const [packets, label] of [['RTP', 0] as const, ['RTCP', 3] as const]) {
        secrets.set(`${side} ${packets} key`, derived(key, salt, label, 16));
        secrets.set(`${side} ${packets} authentication key`, derived(key, salt, label + 1, 20));
        secrets.set(`${side} ${packets} salt`, derived(key, salt, label + 2, length));
      }
    }
    const pid = child.pid ?? 0;
    const told = [localKey, localSalt, remoteKey, remoteSalt].map((secret) => secret.toString('hex')).join(' ');
    expect(await say(`open ${profile} ${told}`)).toBe('native open');
    // Proof that the search finds keys.
    const salts = new Map([...secrets].filter(([name]) => /RTC?P salt$/.test(name)));
    await until('the keys are in memory', () => found(pid, salts).length === 4, { deadlineMs: 30_000 });
    expect(await say('close')).toBe('native close');
    // The threads of the addon learn of it a moment later.
    let left: string[] = [];
    await until(
      'the keys are gone',
      () => {
        left = found(pid, secrets);
        return left.length === 0;
      },
      { deadlineMs: 5000, everyMs: 100 },
    ).catch(() => undefined);
    expect(left).toEqual([]);
  },
);
