/** The API on a real core with some live streams and nothing else. Prints its port. */
import { startApi } from '../../test/contract/harness.ts';

const STREAMS = 3;

const api = await startApi();
for (let index = 0; index < STREAMS; index += 1) await api.publish('default', 'app', `s${index}`);
console.log(`port ${api.port}`);
