import { fuzzTests } from './support/fuzz-tests.ts';
import { RELAY_TARGETS } from './targets/relays.ts';

fuzzTests('RTSP and OVT', RELAY_TARGETS);
