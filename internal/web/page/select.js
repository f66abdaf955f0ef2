// Which pods are shown, and in which order: pure functions.

import { stateOf, urgency } from './states.js';
import { keyOf } from './pods.js';

/** matches reports whether a pod is among those that are asked for: {text, state, namespace}. Those that are gone are shown on request. */
export function matches(pod, { text = '', state = '', namespace = '' }) {
  if (state === '' ? pod.gone : stateOf(pod) !== state) return false;
  if (namespace !== '' && pod.namespace !== namespace) return false;
  return words(text).every((word) => searchable(pod).includes(word));
}

const words = (text) => text.toLowerCase().split(/\s+/).filter((word) => word !== '');

const searchable = (pod) => [keyOf(pod), pod.status, stateOf(pod), pod.ip ?? '', pod.uid, pod.why, ...found(pod)].join('\n').toLowerCase();

// A search for drift or alert finds the pods that have some.
const found = (pod) => [pod.drift ? 'drift' : '', pod.alerts ? 'alert' : ''];

/** pendingSince is since when a change waits for the API server, null if none does. */
export function pendingSince(pod) {
  const { version, accepted, since } = pod.delivery;
  return version > accepted && since ? Date.parse(since) : null;
}

// A pod whose state is not true needs attention as one whose state is not known.
const attention = (pod) => (pod.drift ? Math.min(urgency(stateOf(pod)), urgency('Unknown')) : urgency(stateOf(pod)));
const missing = (pod) => pod.containers - pod.ready;
const born = (pod) => (pod.created ? Date.parse(pod.created) : 0);
const waiting = (pod) => pendingSince(pod) ?? Infinity;
const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

// Each order begins with what needs attention, except that of names.
const orders = {
  pod: () => 0,
  state: (a, b) => attention(a) - attention(b),
  status: (a, b) => byText(a.status, b.status),
  ready: (a, b) => missing(b) - missing(a),
  restarts: (a, b) => b.restarts - a.restarts,
  age: (a, b) => born(b) - born(a),
  lag: (a, b) => (waiting(a) === waiting(b) ? 0 : waiting(a) - waiting(b)),
};

export const columns = Object.keys(orders);

/** comparator returns the order of two pods by a column; equal ones are ordered by name. */
export function comparator({ column, reverse }) {
  const primary = orders[column] ?? orders.state;
  const sign = reverse ? -1 : 1;
  const names = column === 'pod' ? sign : 1;
  return (a, b) => sign * primary(a, b) || names * byText(keyOf(a), keyOf(b));
}

/** place is where an item belongs in a sorted list, by binary search. */
export function place(list, item, compare) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(list[middle], item) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** shortWhy is the explanation for a row that has the name and the state beside it: what is not true, the deepest cause, or what follows "because". */
export function shortWhy(pod) {
  const untrue = `What the API says of pod ${keyOf(pod)} is not true`;
  if (pod.why.startsWith(untrue)) return `Not true${pod.why.slice(untrue.length)}`;
  if (pod.brief) return capitalize(pod.brief);
  const text = pod.why.replace(`Pod ${keyOf(pod)} `, '');
  if (pod.gone) return capitalize(text);
  const because = text.indexOf(', because ');
  if (because >= 0) return capitalize(text.slice(because + ', because '.length));
  const end = text.indexOf('. ');
  return end >= 0 ? capitalize(text.slice(end + 2)) : '';
}

const capitalize = (text) => text.charAt(0).toUpperCase() + text.slice(1);
