// The explanation on top of a pod's page: the sentence, then the chain of causes, each of which ends
// with what would change it.

import { el } from './dom.js';
import { sentence, until } from './sentence.js';
import { shortWhy } from './select.js';
import { stateOf, tone } from './states.js';
import { ticking } from './ticking.js';
import { clock, full, span } from './times.js';

export function explanation(detail, now) {
  const e = detail.explanation;
  const reported = detail.gone ? `Gone since ${clock(detail.gone, now)}. ${shortWhy(detail)}` : sentence(e, now);
  return el('div', { class: 'explanation', 'data-tone': e.notTrue?.length ? 'bad' : tone(stateOf(detail)) },
    (e.notTrue ?? []).map((c) => el('p', { class: 'sentence untrue' }, `Not true${c.since ? ` since ${clock(c.since, now)}` : ''}: ${c.text}.`)),
    el('p', { class: 'sentence' }, e.notTrue?.length ? `Reported: ${reported}` : reported),
    chain(e.causes, now),
    (e.logs ?? []).map(log),
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
    c.behind ? chain(c.causes, now) : null,
    el('p', { class: 'cause' }, c.text, ' ', el('code', { class: 'code' }, c.code),
      c.since ? el('span', { class: 'since', title: full(c.since) }, ` since ${clock(c.since, now)}, `, ticking((at) => span(at - Date.parse(c.since)), now)) : null),
    c.behind ? null : chain(c.causes, now),
    c.next ? next(c.next, now) : null);
}

// log is the end of the log of a run that failed. It is text, whatever it says.
function log({ container, previous, lines }) {
  return el('figure', { class: 'log' },
    el('figcaption', {}, `The end of the log of container ${container}${previous ? ', of the run before' : ''}`),
    el('pre', { tabindex: '0', 'aria-label': `Log of container ${container}` }, lines.join('\n')));
}

function next({ do: todo, command, wait, at }, now) {
  return el('dl', { class: 'next' },
    wait ? [el('dt', {}, 'Next'), el('dd', {}, wait, at ? ticking((time) => ` ${until(at, time, span)}`, now) : null, '.')] : null,
    todo ? [el('dt', { class: 'todo' }, 'To do'), el('dd', {}, `${todo}.`, command ? el('code', { class: 'command' }, command) : null)] : null);
}
