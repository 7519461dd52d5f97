import { fuzzTests } from './support/fuzz-tests.ts';
import { CODEC_TARGETS } from './targets/codecs.ts';

fuzzTests('codecs', CODEC_TARGETS);
