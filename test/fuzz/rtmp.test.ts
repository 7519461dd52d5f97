import { fuzzTests } from './support/fuzz-tests.ts';
import { RTMP_TARGETS } from './targets/rtmp.ts';

fuzzTests('RTMP', RTMP_TARGETS);
