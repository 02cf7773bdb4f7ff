// The worker's answers.

const PATIENCE_MILLISECONDS = 5000;
const NOT_FOUND = 404;

/** The worker's answer, null where it has no such thing (any more). */
export async function ask(page, parameters) {
  const address = `${page}?${new URLSearchParams(parameters)}`;
  const answer = await fetch(address, { signal: AbortSignal.timeout(PATIENCE_MILLISECONDS) });
  if (answer.status === NOT_FOUND) return null;
  if (!answer.ok) throw new Error(`${page}: ${answer.status}`);
  return answer.json();
}
