/** What descriptions say of elements that are read and checked, and that this server does nothing with yet (`not-built.ts`). */

/** Of what protects viewers or media: without it nothing may be served. */
export const REFUSED = 'not built yet, and what has it enabled is refused';
/** Of everything else. */
export const NO_EFFECT = 'not built yet, of no effect';
