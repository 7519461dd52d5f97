/** `npm install` in a checkout runs this; a published package has the bundle of its build. */
import { installBundleOfSources } from './find.mjs';

installBundleOfSources();
