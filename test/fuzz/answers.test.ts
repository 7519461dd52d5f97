import { fuzzTests } from './support/fuzz-tests.ts';
import { ANSWER_TARGETS } from './targets/answers.ts';

fuzzTests('requests that the addon answers', ANSWER_TARGETS);
