/** Which view serves which kind of outlet. */
import type { ViewFactories } from './outlet-registry.ts';

export const VIEWS: ViewFactories = {};
