// The alerts of rules: of a pod, or of the node and all its pods.

import { el } from './dom.js';
import { flag } from './containers.js';
import { moment } from './moments.js';
import { subject } from './differences.js';

/** toneOf is how loud an alert is: one that is silenced, pending or only informs is not red. */
export function toneOf(a) {
  if (a.silenced || a.state === 'resolved') return 'done';
  if (a.state === 'pending') return 'busy';
  return a.severity === 'info' ? 'done' : 'bad';
}

/** folded are the alerts by rule and state, in the order of the list: those that fire first. */
export function folded(list) {
  const groups = new Map();
  for (const a of list) {
    const key = `${a.state} ${a.rule} ${a.severity} ${a.silenced ?? ''}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(a);
  }
  return [...groups.values()];
}

/** stateOf is how far an alert has come, in words. */
export const alertState = (a) => (a.silenced ? `${a.state}, silenced` : a.state);

/** reached is when an alert came into its state. */
export const reached = (a) => (a.state === 'resolved' && a.resolved) || (a.state === 'firing' && a.firing) || a.since;

/** texts are what people read of an alert: the short annotation first, and what to do. */
export function texts({ annotations: n = {} }) {
  const short = n.summary ?? n.message ?? n.description ?? '';
  const long = [n.description, n.action ? `To do: ${n.action}` : '', n.runbook, n.runbook_url].filter((text) => text && text !== short);
  return [short, ...long];
}

/** alerts is one line for each rule, which opens. named: with what each alert is of. more: how many are not in the list. */
export function alerts(list, now, { named = false, more = 0 } = {}) {
  if (!list?.length) return el('p', { class: 'quiet' }, 'No alert fires.');
  return el('div', { class: 'alerts' }, folded(list).map((group) => fold(group, now, named)),
    more > 0 ? el('p', { class: 'quiet' }, `And ${more} more: statusd alerts lists them.`) : null);
}

// fold is the alerts of one rule that are in one state.
function fold(group, now, named) {
  const [first] = group;
  const count = group.length > 1 ? ` × ${group.length}` : '';
  return el('details', {},
    el('summary', {}, flag(toneOf(first), el('strong', {}, `${first.rule}${count}`)), ' ',
      el('span', { class: 'quiet' }, `${first.severity || 'no severity'}, ${alertState(first)}`), ' ', moment(reached(first), now)),
    el('ul', {}, group.map((a) => el('li', {}, named ? el('p', {}, of(a), ' ', moment(reached(a), now)) : null, what(a, named)))));
}

function of(a) {
  const where = a.pod ? subject({ namespace: a.namespace, name: a.pod }) : a.scope;
  return el('span', {}, where, a.container ? ` ${a.container}` : null);
}

function what(a, named) {
  const [short, ...long] = texts(a);
  return el('div', {},
    !named && a.container ? el('p', {}, `Container ${a.container}`) : null,
    short ? el('p', {}, short) : null, long.map((text) => el('p', { class: 'quiet' }, text)),
    (a.actions ?? []).map((done) => el('p', { class: 'quiet' }, `${done.action}: ${done.result}${done.message ? `, ${done.message}` : ''}`)));
}
