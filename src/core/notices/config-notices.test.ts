import { expect, test } from 'vitest';
import type { ApplicationConfig } from '../../config/index.ts';
import { atOnce } from '../../util/in-slices.ts';
import { definitionsOf, postRedeclared } from './config-notices.ts';
import type { Notice } from './notice.ts';

const app = (name: string, more: object = {}) => {
  const config = { name, outputProfiles: { outputProfile: [] }, ...more } as unknown as ApplicationConfig;
  return { name, definition: { name, config, echo: {} } };
};
const host = (name: string, applications: readonly ReturnType<typeof app>[]) => ({
  name,
  applications: new Map(applications.map((each) => [each.name, each])),
});

test('lists the differences of another configuration file, and no unchanged objects', () => {
  const [stays, profile] = [app('stays'), { name: 'p' }];
  const before = definitionsOf([
    host('gone', [app('in-gone')]),
    host('kept', [stays, app('removed'), app('keys'), app('other', { outputProfiles: { outputProfile: [profile] } })]),
  ]);
  const after = definitionsOf([
    host('kept', [stays, app('keys', { publishKeys: [{ name: 'k' }] }), app('other', { type: 'live' }), app('new')]),
    host('more', [app('in-more')]),
  ]);
  const told: Notice[] = [];
  atOnce(postRedeclared({ post: (notice) => told.push(notice) }, before, after));
  expect(told).toEqual([
    { type: 'app.deleted', vhost: 'gone', app: 'in-gone' },
    { type: 'vhost.deleted', vhost: 'gone' },
    { type: 'app.deleted', vhost: 'kept', app: 'removed' },
    { type: 'keys.changed', vhost: 'kept', app: 'keys' },
    { type: 'app.changed', vhost: 'kept', app: 'other' },
    { type: 'outputProfile.deleted', vhost: 'kept', app: 'other', profile: 'p' },
    { type: 'app.created', vhost: 'kept', app: 'new' },
    { type: 'vhost.created', vhost: 'more' },
    { type: 'app.created', vhost: 'more', app: 'in-more' },
  ]);
});
