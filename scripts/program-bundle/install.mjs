/** Run by `npm install` in a checkout; a published package contains the bundle of its build. */
import { installBundleOfSources } from './find.mjs';

installBundleOfSources();
