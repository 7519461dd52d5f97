import { fuzzTests } from './support/fuzz-tests.ts';
import { ACCESS_TARGETS } from './targets/access.ts';

fuzzTests('access control', ACCESS_TARGETS);
