/** Origins whose web pages may call. */
import type { Static } from '@sinclair/typebox';
import { list, object, text } from './field.ts';

/** `<CrossDomains>`, the same element wherever it stands: defaults, publishers, providers, the API. */
export const CrossDomainsSchema = object('Origins of web pages that may read the answers (CORS)', {
  urls: list(
    'Allowed origins: `*` for all, or patterns such as `https://*.example.org`; a pattern without a scheme matches every scheme',
    text('Origin pattern', { form: 'origin' }),
    { xml: 'Url', default: [] },
  ),
  headers: list(
    'Headers added to every answer',
    object('One header', {
      key: text('Header name', { form: 'header-name' }),
      value: text('Header value', { form: 'header-value' }),
    }),
    { xml: 'Header', default: [] },
  ),
});
/** The typed form of `<CrossDomains>`; patterns are as written, not compiled. */
export type CrossDomainsConfig = Static<typeof CrossDomainsSchema>;
