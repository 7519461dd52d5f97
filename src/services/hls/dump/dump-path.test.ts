import { expect, test } from 'vitest';
import { expandDumpPath } from './dump-path.ts';

const values = { vhost: 'default', app: 'app', stream: '../a/b', time: new Date(2026, 1, 3, 4, 5, 6).getTime() };

test.each([
  ['/d/${VHostName}_${AppName}/${YYYY}/${MM}/${DD}/${hh}${mm}${ss}', /^\/d\/default_app\/2026\/02\/03\/040506$/],
  ['${StreamName}', /^\.\._a_b$/],
  ['${ISO8601}', /^2026-02-03T04:05:06[+-]\d{4}$/],
  ['${S} ${z}', /^[+-]\d{4} [+-]\d{4}$/],
  ['${Other} $YYYY {YYYY}', /^\$\{Other\} \$YYYY \{YYYY\}$/],
])('%s', (template, path) => {
  expect(expandDumpPath(template, values)).toMatch(path);
});
