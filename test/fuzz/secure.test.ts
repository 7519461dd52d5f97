import { fuzzTests } from './support/fuzz-tests.ts';
import { SECURE_TARGETS } from './targets/secure.ts';

fuzzTests('TLS and HTTP/2 of the addon', SECURE_TARGETS);
