import { fuzzTests } from './support/fuzz-tests.ts';
import { TEXT_TARGETS } from './targets/texts.ts';

fuzzTests('HTTP, JSON and XML', TEXT_TARGETS);
