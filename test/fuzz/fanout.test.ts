import { fuzzTests } from './support/fuzz-tests.ts';
import { DTLS_TARGETS } from './targets/dtls.ts';
import { FANOUT_TARGETS } from './targets/fanout.ts';

fuzzTests('addon and fallback', [...DTLS_TARGETS, ...FANOUT_TARGETS]);
