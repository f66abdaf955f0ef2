// The explanation of a pod as a sentence, with times in the zone of the reader. Package explain has
// the same sentence for programs that do not render it themselves.

import { clock } from './times.js';

const headlines = {
  Unscheduled: 'Not scheduled', Starting: 'Starting', Initializing: 'Initializing', Ready: 'Ready', NotReady: 'Not Ready',
  Terminating: 'Still Terminating', Succeeded: 'Succeeded', Failed: 'Failed', Rejected: 'Rejected', Evicted: 'Evicted',
  Unknown: 'In an unknown state',
};

// States that are events rather than durations.
const ends = new Set(['Succeeded', 'Failed', 'Rejected', 'Evicted']);

/** sentence says one cause; of several only how many there are, since each is a paragraph of its own below. */
export function sentence({ state, since, causes = [] }, now) {
  const when = since ? ` ${ends.has(state) ? 'at' : 'since'} ${clock(since, now)}` : '';
  const why = causes.length === 1 ? `, because ${join(causes)}` : causes.length > 1 ? `, for ${causes.length} reasons` : '';
  return `${headlines[state] ?? state}${when}${why}.`;
}

// join is the causes and what is behind each.
function join(causes) {
  return causes.map((c) => {
    if (!c.causes?.length) return c.text;
    return c.behind ? `${join(c.causes)} · ${c.text}` : `${c.text}: ${join(c.causes)}`;
  }).join('; and ');
}

/** until is when something happens: "in 38s (10:33:21)". */
export function until(at, now, written) {
  const left = Date.parse(at) - now;
  return left > 0 ? `in ${written(left)} (${clock(at, now)})` : 'at any moment';
}
