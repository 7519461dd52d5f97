import { fuzzTests } from './support/fuzz-tests.ts';
import { RTP_TARGETS } from './targets/rtp.ts';

fuzzTests('RTP', RTP_TARGETS);
