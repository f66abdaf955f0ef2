// The explanation on top of a pod's page: the sentence, then the chain of causes, each of which ends
// with what would change it.

import { el } from './dom.js';
import { sentence, until } from './sentence.js';
import { shortWhy } from './select.js';
import { stateOf, tone } from './states.js';
import { ticking } from './ticking.js';
import { age, clock, full } from './times.js';

export function explanation(detail, now) {
  const e = detail.explanation;
  const reported = detail.gone ? `Gone since ${clock(detail.gone, now)}. ${shortWhy(detail)}` : sentence(e, now);
  return el('div', { class: 'explanation', 'data-tone': e.notTrue?.length ? 'bad' : tone(stateOf(detail)) },
    (e.notTrue ?? []).map((c) => el('p', { class: 'sentence untrue' }, `Not true${c.since ? ` since ${clock(c.since, now)}` : ''}: ${c.text}.`)),
    el('p', { class: 'sentence' }, e.notTrue?.length ? `Reported: ${reported}` : reported),
    chain(e.causes, now),
    e.next ? el('ul', { class: 'chain' }, el('li', {}, next(e.next, now))) : null,
    titled('Worth knowing', e.notes, now),
    titled('The API server does not have the newest status', e.delivery ? [e.delivery] : [], now));
}

function titled(title, causes, now) {
  if (!causes?.length) return null;
  return el('div', { class: 'aside' }, el('h3', {}, title), chain(causes, now));
}

function chain(causes, now) {
  return causes?.length ? el('ul', { class: 'chain' }, causes.map((c) => cause(c, now))) : null;
}

function cause(c, now) {
  return el('li', {},
    el('p', { class: 'cause' }, c.text, ' ', el('code', { class: 'code' }, c.code),
      c.since ? el('span', { class: 'since', title: full(c.since) }, ` since ${clock(c.since, now)}, `, ticking((at) => age(at - Date.parse(c.since)), now)) : null),
    chain(c.causes, now),
    c.next ? next(c.next, now) : null);
}

function next({ do: todo, wait, at }, now) {
  return el('dl', { class: 'next' },
    wait ? [el('dt', {}, 'Next'), el('dd', {}, wait, at ? ticking((time) => ` ${until(at, time, age)}`, now) : null, '.')] : null,
    todo ? [el('dt', { class: 'todo' }, 'To do'), el('dd', {}, `${todo}.`)] : null);
}
