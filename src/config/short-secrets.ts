/** Warns about secrets that are too short to be hidden in texts; they can also be guessed. */
import type { TSchema } from '@sinclair/typebox';
import { MIN_KNOWN_LENGTH } from '../util/known-secrets.ts';
import { elementOf, fieldsOf, innerOf, joined } from './field-plan.ts';
import type { ApplicationConfig, ServerConfig, VirtualHostConfig } from './index.ts';
import { ApplicationSchema } from './schema/application.ts';
import { ServerSchema } from './schema/server.ts';
import { VirtualHostSchema } from './schema/virtual-host.ts';

/** Elements whose whole text is a secret. `Value` is a secret in a token only; elsewhere it is a header or an option. */
const SECRET_ELEMENT = /(?:^|\/)(?:AccessToken|AccessTokens\/Token\/Value|Auth|Credential|SecretKey|SentinelAuth)$/;
const WHY = `is shorter than ${MIN_KNOWN_LENGTH} characters: it can be guessed, and is not left out of lines of the log and live events that have it`;

/** Sentences about the whole server, without its virtual hosts. */
export function shortServerSecrets(config: ServerConfig): string[] {
  return sentences('Server', ServerSchema, config, 'virtualHosts');
}

/** Sentences about a virtual host, without its applications. */
export function shortHostSecrets(config: VirtualHostConfig): string[] {
  return sentences(`virtual host '${config.name}'`, VirtualHostSchema, config, 'applications');
}

/** Sentences about an application. */
export function shortApplicationSecrets(vhost: string, config: ApplicationConfig): string[] {
  return sentences(`application '${vhost}/${config.name}'`, ApplicationSchema, config);
}

/** Warnings for a whole file. */
export function shortSecretsIn(config: ServerConfig): string[] {
  return [
    ...shortServerSecrets(config),
    ...config.virtualHosts.flatMap((vhost) => [
      ...shortHostSecrets(vhost),
      ...vhost.applications.flatMap((application) => shortApplicationSecrets(vhost.name, application)),
    ]),
  ];
}

function sentences(owner: string, schema: TSchema, config: object, without?: string): string[] {
  return [...new Set(shortOnes(schema, config, '', without))].map((element) => `${owner}: ${element} ${WHY}`);
}

/** The elements of short secrets. */
function shortOnes(schema: TSchema, value: object, path: string, without?: string): string[] {
  return fieldsOf(schema).flatMap((field) => {
    const member = (value as Readonly<Record<string, unknown>>)[field.key];
    if (member === undefined || field.key === without) return [];
    const element = joined('/', path, elementOf(field));
    const inner = innerOf(field);
    if (inner !== undefined) return [member].flat().flatMap((item) => shortOnes(inner, item as object, element));
    const isShort = typeof member === 'string' && member !== '' && member.length < MIN_KNOWN_LENGTH;
    return isShort && SECRET_ELEMENT.test(element) ? [element] : [];
  });
}
