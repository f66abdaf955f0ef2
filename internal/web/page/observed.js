// What is known of a node beside a kubelet: who answers, how healthy the kubelet is, what fires.

import { el } from './dom.js';
import { flag } from './containers.js';
import { facts, grid } from './grid.js';
import { moment } from './moments.js';
import { known, sideName, sidesOf, silent } from './sides.js';

const moods = { healthy: 'good', degraded: 'busy', unhealthy: 'bad', unknown: 'busy' };

/** isObserved reports whether an audit, a guard or rules look at the node. */
export const isObserved = (n) => Boolean(n.sides || n.kubelet || n.alerts);

/** strip says in a line what they have found. */
export function strip(n) {
  return el('ul', { class: 'chips' },
    silent(n.sides).map((side) => link(flag('bad', `${side} does not answer`))),
    n.sides ? link(n.drift > 0 ? flag('bad', `${n.drift} not true`) : flag('good', 'nothing known to be untrue')) : null,
    n.kubelet ? link(flag(moods[n.kubelet.health] ?? 'bad', `kubelet ${n.kubelet.health}`)) : null,
    n.alerts ? link(n.firing > 0 ? flag('bad', `${n.firing} ${n.firing === 1 ? 'alert' : 'alerts'}`) : flag('good', 'no alerts')) : null);
}

const link = (content) => el('li', {}, el('a', { href: '#/node', class: 'plain' }, content));

export function sides(n, now) {
  return grid('Sides', ['Side', 'Answers', 'Since', 'Last answer', 'Asked', 'Error'], sidesOf(n.sides).map(([side, a]) => [
    el('strong', {}, sideName(side)), known(a) ? flag('good', 'yes') : flag('bad', 'no'), moment(known(a) ? a.since : a.silent, now),
    moment(a.at, now) ?? 'never', a.from ?? '', a.error ?? '',
  ]));
}

export function kubelet(k, now) {
  return el('div', {},
    facts([
      ['Health', flag(moods[k.health] ?? 'bad', k.health)], ['Since', moment(k.since, now)], ['Unit', k.unit], ['PID', k.pid ? String(k.pid) : null], ['Started', moment(k.started, now)],
      ['A restart helps', k.health === 'healthy' ? null : k.restartHelps ? 'yes' : 'no'], ['To do', k.do], ['Not restarted', k.withheld],
      ['Maintenance until', moment(k.maintenance, now)], ['Next restart', k.nextRestart ? el('span', {}, 'not before ', moment(k.nextRestart, now)) : null],
    ]),
    part('Reasons', k.reasons, (list) => grid('Reasons', ['Reason', 'Since', 'What'], list.map((r) => [el('strong', {}, r.code), moment(r.since, now), r.message]))),
    part('Evidence', k.evidence, (list) => grid('Evidence', ['Evidence', 'OK', 'As of', 'What'], list.map((e) => [
      el('strong', {}, e.name), e.unknown ? 'unknown' : e.ok ? flag('good', 'yes') : flag('bad', 'no'), e.at ? moment(e.at, now) : '', e.text]))),
    part('Restarts', k.restarts, (list) => grid('Restarts', ['Restarted', 'What', 'By', 'Reason', 'Result', 'Evidence kept in'], [...list].reverse().map((r) => [
      moment(r.at, now), r.what || 'kubelet', r.by, r.reason, r.error ? flag('bad', r.error) : flag('good', 'done'), r.evidence ?? '']))));
}

const part = (title, list, make) => (list?.length ? el('div', {}, el('h3', {}, title), make(list)) : null);
