/** What a configuration asks for and this server does not do yet: to be said aloud, above all where it is about security. */
import { fieldsOf } from './field-plan.ts';
import type { ApplicationConfig, ServerConfig, VirtualHostConfig } from './index.ts';
import { ApplicationProvidersSchema } from './schema/providers.ts';
import { PublishersSchema } from './schema/publishers.ts';

/** Sentences about the whole server, without its virtual hosts. */
export function notBuiltInServer({ alert, bind, modules }: ServerConfig): string[] {
  return sentences('Server', [
    [alert !== undefined, 'Alert', 'no alerts are sent'],
    [bind.providers.rtsp !== undefined, 'Bind/Providers/RTSP', 'nobody can publish over RTSP'],
    [modules.p2p.enable, 'Modules/P2P', 'viewers do not serve each other'],
    [modules.recovery.enable, 'Modules/Recovery', 'streams that cannot keep up drop frames and stay'],
    [modules.etag.enable, 'Modules/ETag', 'answers have no ETag'],
  ]);
}

/**
 * What protects a virtual host or its media and is not built: serving it without would let in whom the operator shuts out, so such a
 * definition is refused. Sentences, each with the element.
 */
export function unprotected(vhost: VirtualHostConfig): string[] {
  const { name, admissionWebhooks, applications } = vhost;
  return [
    ...refusals(`virtual host '${name}'`, [[isEnabled(admissionWebhooks), 'AdmissionWebhooks']]),
    ...applications.flatMap((application) => unprotectedApplication(name, application)),
  ];
}

/** The same of one application. */
export function unprotectedApplication(vhost: string, { name, publishers }: ApplicationConfig): string[] {
  return refusals(`application '${vhost}/${name}'`, [[publishers.llhls?.dRM?.enable === true, 'Publishers/LLHLS/DRM']]);
}

/** Everything at once: the server, its virtual hosts and their applications. */
export function notBuiltIn(config: ServerConfig): string[] {
  const hosts = config.virtualHosts.flatMap((vhost) =>
    vhost.applications.flatMap((application) => notBuiltInApplication(vhost.name, application)),
  );
  return [...notBuiltInServer(config), ...hosts];
}

/** Sentences about an application. */
export function notBuiltInApplication(vhost: string, application: ApplicationConfig): string[] {
  const { providers, publishers, outputProfiles, eventGenerator, transcodeWebhook, persistentStreams } = application;
  const { subtitles, overlays } = outputProfiles.mediaOptions ?? {};
  const limited = [
    ...limitedMembers('Providers', ApplicationProvidersSchema, providers),
    ...limitedMembers('Publishers', PublishersSchema, publishers),
  ];
  return sentences(`application '${vhost}/${application.name}'`, [
    [providers.schedule !== undefined, 'Providers/Schedule', 'no scheduled channel plays'],
    [providers.multiplex !== undefined, 'Providers/Multiplex', 'no multiplex channel plays'],
    [providers.rtmp?.eventGenerator !== undefined, 'Providers/RTMP/EventGenerator', 'no events are made'],
    [eventGenerator?.enable === true, 'EventGenerator', 'no events are made'],
    [transcodeWebhook?.enable === true, 'TranscodeWebhook', 'the profiles configured here are used'],
    [subtitles?.enable === true, 'OutputProfiles/MediaOptions/Subtitles', 'there are none'],
    [overlays?.enable === true, 'OutputProfiles/MediaOptions/Overlays', 'frames are as they come'],
    [publishers.webrtc?.jitterBuffer === true, 'Publishers/WebRTC/JitterBuffer', 'frames leave as they come'],
    [(persistentStreams?.stream.length ?? 0) > 0, 'PersistentStreams', 'a stream ends with its source unless SourceLoss keeps it'],
    ...limited.map((element) => [true, element, 'Limits are what holds'] as const),
  ]);
}

/** The elements of `parent` that ask for a limit of connections. */
function limitedMembers(parent: string, schema: typeof ApplicationProvidersSchema | typeof PublishersSchema, members: object): string[] {
  return fieldsOf(schema).flatMap(({ key, xmlNames: [name] }) => {
    const member = (members as Readonly<Record<string, { readonly maxConnection?: number } | undefined>>)[key];
    return (member?.maxConnection ?? 0) > 0 ? [`${parent}/${name}/MaxConnection`] : [];
  });
}

function isEnabled(
  control: { readonly enables: { readonly providers: readonly string[]; readonly publishers: readonly string[] } } | undefined,
) {
  return control !== undefined && control.enables.providers.length + control.enables.publishers.length > 0;
}

function refusals(owner: string, rules: readonly (readonly [asked: boolean, element: string])[]): string[] {
  return rules.filter(([asked]) => asked).map(([, element]) => `${owner}: ${element} is not built yet, and nothing is served without it`);
}

function sentences(owner: string, rules: readonly (readonly [asked: boolean, element: string, consequence: string])[]): string[] {
  return rules.filter(([asked]) => asked).map(([, element, consequence]) => `${owner}: ${element} is not built yet: ${consequence}`);
}
