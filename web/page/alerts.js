// The alerts of rules: of a pod, or of the node and all its pods.

import { el } from './dom.js';
import { flag } from './containers.js';
import { grid } from './grid.js';
import { moment } from './moments.js';
import { subject } from './differences.js';

const tones = { firing: 'bad', pending: 'busy', resolved: 'done' };

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

/** alerts makes a table. named: with what each alert is of. more: how many are not in the list. */
export function alerts(list, now, { named = false, more = 0 } = {}) {
  if (!list?.length) return el('p', { class: 'quiet' }, 'No alert fires.');
  const titles = ['Severity', 'Alert', ...(named ? ['Of'] : []), 'State', 'Since', 'What'];
  const table = grid('Alerts', titles, list.map((a) => [
    flag(a.silenced ? 'done' : tones[a.state] ?? 'bad', a.severity || 'none'), el('strong', {}, a.rule),
    ...(named ? [of(a)] : []), alertState(a), moment(reached(a), now), what(a, named),
  ]));
  return more > 0 ? el('div', {}, table, el('p', { class: 'quiet' }, `And ${more} more: statusd alerts lists them.`)) : table;
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
