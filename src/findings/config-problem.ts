/**
 * The configuration cannot be used; `message` lists the problems, one line each. In a file of its own, because the library exports it and
 * its types must not depend on the configuration's types.
 */
export class ConfigProblem extends Error {
  override readonly name = 'ConfigProblem';
}
