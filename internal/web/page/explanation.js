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
    isLine(e.causes) ? roots(e.causes).map((c) => (c.next ? next(c.next, now) : null)) : chain(e.causes, now),
    (e.logs ?? []).map(log),
    isLine(e.causes) ? folded(e.causes, now) : null,
    e.next ? el('ul', { class: 'chain' }, el('li', {}, next(e.next, now))) : null,
    titled('Worth knowing', e.notes, now),
    titled('The API server does not have the newest status', e.delivery ? [e.delivery] : [], now));
}

// isLine reports whether each cause has one cause at most: the sentence says them all.
const isLine = (causes) => causes?.length === 1 && (!causes[0].causes?.length || isLine(causes[0].causes));

// roots are the causes that have no deeper ones.
const roots = (causes) => causes.flatMap((c) => (c.causes?.length ? roots(c.causes) : [c]));

// folded is the chain of causes behind a sentence that says it, with codes and times.
function folded(causes, now) {
  return el('details', { class: 'folded' }, el('summary', {}, 'Each cause, with its code and since when'), chain(causes, now, true));
}

function titled(title, causes, now) {
  if (!causes?.length) return null;
  return el('div', { class: 'aside' }, el('h3', {}, title), chain(causes, now));
}

function chain(causes, now, bare = false) {
  return causes?.length ? el('ul', { class: 'chain' }, causes.map((c) => cause(c, now, bare))) : null;
}

// cause is one of the chain; bare: without what would change it.
function cause(c, now, bare) {
  return el('li', {},
    c.behind ? chain(c.causes, now, bare) : null,
    el('p', { class: 'cause' }, c.text, ' ', el('code', { class: 'code' }, c.code),
      c.since ? el('span', { class: 'since', title: full(c.since) }, ` since ${clock(c.since, now)}, `, ticking((at) => span(at - Date.parse(c.since)), now)) : null),
    c.behind ? null : chain(c.causes, now, bare),
    c.next && !bare ? next(c.next, now) : null);
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
