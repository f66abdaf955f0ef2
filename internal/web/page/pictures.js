// What each side says of a pod, side by side. What contradicts another side has a sign and a word, and a color.

import { el } from './dom.js';
import { flag } from './containers.js';
import { grid } from './grid.js';
import { moment } from './moments.js';
import { arranged, containerNames, sideName, stateText } from './sides.js';
import { ticking } from './ticking.js';
import { full, span } from './times.js';

export function pictures(list, now) {
  const sides = arranged(list);
  const row = (title, of) => [el('strong', {}, title), ...sides.map(of)];
  const rows = [
    row('Answers', (p) => (p.known ? flag('good', 'yes') : flag('busy', `no${p.error ? `: ${p.error}` : ''}`))),
    row('As of', (p) => moment(p.at, now)),
    row('Has the pod', (p) => (p.exists ? 'yes' : 'no')),
    row('Phase', (p) => p.phase ?? null),
    row('Ready', (p) => p.ready ?? null),
    sides.some((p) => p.deleting) ? row('Being deleted', (p) => (p.deleting ? 'yes' : 'no')) : null,
    ...containerNames(sides).flatMap((name) => containerRows(name, sides, row, now)),
    sides.some((p) => p.notes?.length) ? row('Notes', (p) => notes(p.notes)) : null,
    row('Asked', (p) => p.from ?? null),
  ];
  return el('div', { class: 'pictures' }, grid('What each side says of the pod', ['What', ...sides.map((p) => sideName(p.side))], rows.filter(Boolean)));
}

function containerRows(name, sides, row, now) {
  const of = (p) => (p.containers ?? []).find((c) => c.name === name);
  return [
    row(`Container ${name}`, (p) => state(of(p), now)),
    row('Restarts', (p) => (of(p) ? String(of(p).restarts) : null)),
  ];
}

function state(c, now) {
  if (!c) return null;
  const since = c.since ? el('span', { class: 'quiet', title: full(c.since) }, ' for ', ticking((at) => span(at - Date.parse(c.since)), now)) : null;
  if (!c.differs) return el('span', {}, stateText(c), since);
  return el('span', { class: 'differs', 'data-tone': 'bad' }, el('span', { class: 'sign', 'aria-hidden': 'true' }, '≠ '), el('span', { class: 'spoken' }, 'contradicts another side: '), stateText(c), since);
}

const notes = (list) => (list?.length ? el('ul', {}, list.map((text) => el('li', {}, text))) : null);
