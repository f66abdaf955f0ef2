// One row of the table of pods. It keeps its cells, and changes only those whose text has changed.

import { el, setAttribute, setText } from './dom.js';
import { pendingSince, shortWhy } from './select.js';
import { sign, stateOf, tone, word } from './states.js';
import { age, full, lag } from './times.js';
import { podHref } from './route.js';

export class Row {
  constructor(key, pod) {
    this.key = key;
    this.namespace = el('span', { class: 'namespace' });
    this.link = el('a', { class: 'name' });
    this.badge = el('span', { class: 'badge' });
    this.why = el('div');
    this.drift = badge('drift');
    this.alerts = badge('alerts');
    this.cells = {
      pod: cell('pod', '', this.link, this.namespace),
      state: cell('state', '', this.badge),
      status: cell('status', 'Status'),
      ready: cell('number ready', 'Ready'),
      restarts: cell('number restarts', 'Restarts'),
      age: cell('number age', 'Age'),
      lag: cell('number lag', 'Lag'),
      why: cell('why', '', this.drift, this.alerts, this.why),
    };
    this.element = el('tr', { role: 'row', 'data-key': key }, Object.values(this.cells));
    this.update(pod);
  }

  update(pod) {
    this.pod = pod;
    setText(this.link, pod.name);
    setText(this.namespace, pod.namespace);
    setAttribute(this.link, 'href', podHref(pod));
    const mood = tone(stateOf(pod));
    setText(this.badge, `${sign(mood)} ${word(stateOf(pod))}`);
    setAttribute(this.badge, 'data-tone', mood);
    setText(this.cells.status, pod.status);
    setText(this.cells.ready, `${pod.ready}/${pod.containers}`);
    setText(this.cells.restarts, String(pod.restarts));
    setText(this.why, shortWhy(pod));
    show(this.drift, pod.drift, '≠', pod.drift === 1 ? '1 difference: what the API reports is not true' : `${pod.drift} differences: what the API reports is not true`);
    show(this.alerts, pod.alerts, '!', pod.alerts === 1 ? '1 alert fires' : `${pod.alerts} alerts fire`);
    setAttribute(this.cells.why, 'title', pod.why);
    setAttribute(this.cells.age, 'title', pod.created ? full(pod.created) : null);
  }

  /** tick shows what changes with time alone. The age of a pod that is gone is the one it reached. */
  tick(now) {
    const { pod, cells } = this;
    setText(cells.age, pod.created ? age((pod.gone ? Date.parse(pod.gone) : now) - Date.parse(pod.created)) : '–');
    const since = pendingSince(pod);
    setText(cells.lag, since === null ? '–' : lag(now - since));
    setAttribute(cells.lag, 'data-tone', since !== null && now - since >= 1000 ? 'bad' : null);
    setAttribute(cells.lag, 'title', since === null ? 'The API server knows the newest status.' : waiting(pod));
  }
}

const badge = (kind) => el('span', { class: `badge found ${kind}`, 'data-tone': 'bad', role: 'img', hidden: true });

// show fills a badge with a number of things that are wrong; without any there is none.
function show(element, count, sign, words) {
  element.hidden = !count;
  if (!count) return;
  setText(element, `${sign} ${count}`);
  setAttribute(element, 'aria-label', words);
  setAttribute(element, 'title', words);
}

const cell = (kind, label, ...children) => el('td', { role: 'cell', class: kind, 'data-label': label || null }, children);

function waiting({ delivery }) {
  const why = delivery.held || delivery.error || 'being sent';
  return `The API server does not know version ${delivery.version} yet: ${why}`;
}
