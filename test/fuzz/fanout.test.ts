import { fuzzTests } from './support/fuzz-tests.ts';
import { FANOUT_TARGETS } from './targets/fanout.ts';

fuzzTests('addon and fallback', FANOUT_TARGETS);
