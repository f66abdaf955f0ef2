// How far the API server knows the status of a pod.

import { el } from './dom.js';
import { flag } from './containers.js';
import { facts } from './grid.js';
import { moment } from './moments.js';
import { pendingSince } from './select.js';
import { ticking } from './ticking.js';
import { lag } from './times.js';

export function delivery(pod, now) {
  const d = pod.delivery;
  const since = pendingSince(pod);
  if (d.version === 0) return el('p', { class: 'quiet' }, 'Nothing is reported to an API server.');
  return facts([
    ['API server', d.version > d.accepted ? flag(d.error || d.held ? 'bad' : 'busy', 'does not have the newest status') : flag('good', 'has the newest status')],
    ['Version', `${d.version}, accepted ${d.accepted}`],
    ['Accepted', moment(d.acceptedAt, now)],
    ['Lag', since === null ? null : ticking((at) => lag(at - since), now)],
    ['First unsent change', since === null ? null : moment(d.since, now)],
    ['Held back by', d.held],
    ['Failed attempts', d.attempts ? String(d.attempts) : null],
    ['Last error', d.error],
    ['Next try', moment(d.nextTry, now)],
    ['Refused fields', d.refused?.join(', ')],
    ['Other writer', d.writer ? `${d.writer}, has changed it back ${d.rounds} times` : null],
  ]);
}
