/** What `millrace` exits with. */
export const ExitCode = {
  CLEAN: 0,
  FAILURE: 1,
  /** Bad configuration or arguments. */
  USAGE: 2,
} as const;
