import { fuzzTests } from './support/fuzz-tests.ts';
import { MOVIE_TARGETS } from './targets/movies.ts';

fuzzTests('MP4', MOVIE_TARGETS);
