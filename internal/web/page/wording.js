// Sentences grow old: "ended 20 s ago" is true when it is written. The watch sends changes of facts, so the page
// asks for the wording again every few seconds.

import { keyOf } from './pods.js';

/** every is how often the wording is asked for, in milliseconds. */
export const every = 5000;

/** restless are the states among these pods whose sentences speak of time. */
export function restless(pods) {
  const calm = new Set(['Ready', 'Succeeded']);
  return [...new Set(pods.map((pod) => pod.state))].filter((state) => !calm.has(state)).sort();
}

/** reworded returns the pods of an answer that differ in wording alone: other news is the watch's, which is newer. */
export function reworded(items, known) {
  return items.filter((item) => {
    const pod = known.get(keyOf(item));
    return pod && (pod.why !== item.why || pod.brief !== item.brief) && facts(pod) === facts(item);
  });
}

const facts = (pod) => JSON.stringify({ ...pod, why: '', brief: '', delivery: { ...pod.delivery, lagSeconds: 0 } });
