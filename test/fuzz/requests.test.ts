import { fuzzTests } from './support/fuzz-tests.ts';
import { REQUEST_TARGETS } from './targets/requests.ts';

fuzzTests('names, tokens and the API', REQUEST_TARGETS);
