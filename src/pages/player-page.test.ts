import { expect, test } from 'vitest';
import { playerFiles } from './player-page.ts';

test('the page has every module that its modules import', async () => {
  const files = playerFiles({ player: true });
  const missing: string[] = [];
  const seen = new Set<string>();
  const visit = async (name: string): Promise<void> => {
    if (seen.has(name)) return;
    seen.add(name);
    const file = files.take(name);
    if (file === null) return void missing.push(name);
    const code = (await file).body.toString();
    for (const [, from = ''] of code.matchAll(/^\s*(?:import|export)\b[^;]*?\bfrom\s+'(\.{1,2}\/[^']+)'/gm)) {
      await visit(new URL(from, `http://host/${name}`).pathname.slice(1));
    }
  };
  await visit('player.ts');
  expect(missing).toEqual([]);
  expect(seen.size).toBeGreaterThan(3);
});
