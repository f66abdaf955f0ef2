// How what the API reports is not true: what, since when, how certain, by which evidence, and what to do.

import { el } from './dom.js';
import { podHref } from './route.js';
import { sideName } from './sides.js';
import { ticking } from './ticking.js';
import { clock, full, span } from './times.js';

/** differences lists them, those that are drift first. named: with the pod that each is of. */
export function differences(list, now, { named = false } = {}) {
  if (!list?.length) return el('p', { class: 'quiet' }, 'None is known.');
  const sorted = [...list].sort((a, b) => Number(b.drift) - Number(a.drift));
  return el('ul', { class: 'differences' }, sorted.map((d) => difference(d, now, named)));
}

function difference(d, now, named) {
  return el('li', { class: 'difference', 'data-tone': d.drift ? 'bad' : 'done', 'data-kind': d.kind },
    el('p', { class: 'what' },
      el('span', { class: 'badge', 'data-tone': d.drift ? 'bad' : 'done' }, d.drift ? '≠ Not true' : '◌ Settling'), ' ',
      named ? [subject(d.pod), ' '] : null, el('strong', {}, d.message), ' ', el('code', { class: 'code' }, d.kind)),
    el('dl', { class: 'next' },
      term('Since', el('span', { title: full(d.since) }, `${clock(d.since, now)}, `, ticking((at) => `${span(at - Date.parse(d.since))} ago`, now))),
      term('Certainty', d.certainty),
      term('Container', d.container), term('Subject', d.subject), term('Written by', d.writer),
      term('Held by', d.holds?.length ? d.holds.join('; ') : null),
      (d.evidence ?? []).flatMap((e) => term(sideName(e.side), el('span', { title: [e.from, e.at ? `as of ${full(e.at)}` : ''].filter(Boolean).join(', ') }, e.text))),
      d.do ? [el('dt', { class: 'todo' }, 'To do'), el('dd', {}, d.do)] : null));
}

const term = (name, value) => (value ? [el('dt', {}, name), el('dd', {}, value)] : null);

/** subject names what something is about, as a link if it is a pod. */
export function subject(ref) {
  if (ref?.name) return el('a', { href: podHref(ref) }, `${ref.namespace}/${ref.name}`);
  return ref?.uid || 'node';
}
