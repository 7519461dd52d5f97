import { fuzzTests } from './support/fuzz-tests.ts';
import { WEBRTC_TARGETS } from './targets/webrtc.ts';

fuzzTests('WebRTC', WEBRTC_TARGETS);
