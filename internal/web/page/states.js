// The states of a pod (package explain, and Gone), in the order in which they need attention, and how each is shown.

export const order = [
  'Failed', 'Rejected', 'Evicted', 'NotReady', 'Unknown', 'Terminating', 'Unscheduled', 'Initializing', 'Starting', 'Ready', 'Succeeded', 'Gone',
];

const tones = {
  Failed: 'bad', Rejected: 'bad', Evicted: 'bad', NotReady: 'bad', Unknown: 'bad',
  Terminating: 'busy', Unscheduled: 'busy', Initializing: 'busy', Starting: 'busy',
  Ready: 'good', Succeeded: 'done', Gone: 'done',
};

const words = { NotReady: 'Not Ready' };

/** urgency sorts states; one that this page does not know comes first, as it may matter most. */
export const urgency = (state) => order.indexOf(state);

/** tone is what a state means at a glance: good, bad, busy or done. */
export const tone = (state) => tones[state] ?? 'bad';

export const word = (state) => words[state] ?? state;

const signs = { good: '●', bad: '▲', busy: '◐', done: '✓' };

/** sign is a shape for a tone, so that no meaning rests on color alone. */
export const sign = (ofTone) => signs[ofTone] ?? '·';

/** stateOf is the state that a pod is shown and filtered by: one that is gone is in no other. */
export const stateOf = (pod) => (pod.gone ? 'Gone' : pod.state);

/** healthy reports whether a condition of a node is well. Those whose names say so are good when they are True; the others are pressures
 * and problems, which are good when they are not. */
export const healthy = (c) => (/(Ready|Healthy|Available)$/.test(c.type) && !/^(Not|Un)/.test(c.type) ? c.status === 'True' : c.status === 'False');
