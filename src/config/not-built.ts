/** What protects somebody and is not built yet: a configuration that relies on it is refused. What only does nothing is told (`ineffective.ts`). */
import type { ApplicationConfig, VirtualHostConfig } from './index.ts';

/**
 * What protects a virtual host or its media and is not built: serving it without would let in whom the operator shuts out, so such a
 * definition is refused. Sentences, each with the element.
 */
export function unprotected(vhost: VirtualHostConfig): string[] {
  return vhost.applications.flatMap((application) => unprotectedApplication(vhost.name, application));
}

/** The same of one application. */
export function unprotectedApplication(vhost: string, { name, publishers }: ApplicationConfig): string[] {
  return refusals(`application '${vhost}/${name}'`, [[publishers.llhls?.dRM?.enable === true, 'Publishers/LLHLS/DRM']]);
}

function refusals(owner: string, rules: readonly (readonly [asked: boolean, element: string])[]): string[] {
  return rules.filter(([asked]) => asked).map(([, element]) => `${owner}: ${element} is not built yet, and nothing is served without it`);
}
