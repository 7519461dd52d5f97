import { fuzzTests } from './support/fuzz-tests.ts';
import { SRT_TARGETS } from './targets/srt.ts';

fuzzTests('SRT', SRT_TARGETS);
