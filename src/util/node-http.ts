/**
 * `node:http` without an ES import of it. Such an import reads all exports, and the getter of `WebSocket` loads a whole HTTP client: a
 * tenth of the start time of every thread.
 */
export const { Agent, createServer, request, STATUS_CODES } = process.getBuiltinModule('node:http');
