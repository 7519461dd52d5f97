// Exits with 0 when the server answers that it runs, also where something is degraded: it serves what it can. Part of the container image.
const url = process.env.MILLRACE_HEALTH_URL ?? `http://127.0.0.1:${process.env.OME_API_PORT ?? 8081}/health`;
const DEADLINE_MS = 4000;

try {
  const answer = await fetch(url, { signal: AbortSignal.timeout(DEADLINE_MS) });
  console.log(`${answer.status} ${(await answer.text()).slice(0, 1000)}`);
  process.exitCode = answer.ok ? 0 : 1;
} catch (error) {
  console.log(`${url}: ${error instanceof Error ? (error.cause ?? error) : error}`);
  process.exitCode = 1;
}
