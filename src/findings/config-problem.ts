/**
 * The configuration cannot be used; `message` lists what is wrong, one line each. In a file of its own, because the library exports it: its
 * types need nothing of the configuration's, and so no package beside this one.
 */
export class ConfigProblem extends Error {
  override readonly name = 'ConfigProblem';
}
