import { fuzzTests } from './support/fuzz-tests.ts';
import { TRANSPORT_STREAM_TARGETS } from './targets/transport-stream.ts';

fuzzTests('MPEG-TS', TRANSPORT_STREAM_TARGETS);
