// The sides that know something about the pods of a node: pure functions.

// From what runs to what is reported of it.
const order = ['runtime', 'kubelet', 'api', 'machine'];

const names = { api: 'API server', runtime: 'Runtime', kubelet: 'Kubelet', machine: 'Machine' };

const rank = (side) => (order.includes(side) ? order.indexOf(side) : order.length);

export const sideName = (side) => names[side] ?? side;

/** known reports whether an answer of a side is complete and current. */
export const known = (answer) => !answer.error && Boolean(answer.at);

/** sidesOf are the sides of a node as [name, answer], in the order in which they are shown. */
export const sidesOf = (sides) => Object.entries(sides ?? {}).sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1));

/** silent are the names of the sides that do not answer. */
export const silent = (sides) => sidesOf(sides).filter(([, answer]) => !known(answer)).map(([side]) => sideName(side));

/** arranged are pictures in the order in which sides are shown. */
export const arranged = (pictures) => [...(pictures ?? [])].sort((a, b) => rank(a.side) - rank(b.side));

/** containerNames are those that any side names, each once. */
export const containerNames = (pictures) => [...new Set(pictures.flatMap((p) => (p.containers ?? []).map((c) => c.name)))].sort();

/** stateText says what a side says of a container, without since when. */
export function stateText(c) {
  const code = c.exitCode === undefined || c.exitCode === null ? '' : ` (exit code ${c.exitCode})`;
  const ready = c.ready === undefined || c.ready === null ? '' : c.ready ? ', ready' : ', not ready';
  return `${[c.state, c.reason].filter(Boolean).join(' ')}${code}${ready}`;
}

/** drifted are the differences that have lasted longer than news takes; the others may be news on its way. */
export const drifted = (differences) => (differences ?? []).filter((d) => d.drift);
