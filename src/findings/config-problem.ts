/** The configuration cannot be used; `message` lists what is wrong, one line each. */
export class ConfigProblem extends Error {
  override readonly name = 'ConfigProblem';
}
