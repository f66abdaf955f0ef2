// How much of its resources a node, or a pod, uses.

import { el } from './dom.js';
import { flag } from './containers.js';
import { facts, grid } from './grid.js';
import { bytes } from './quantity.js';

/** percent is a share of 1 in words. */
export const percent = (share) => `${Math.round(100 * share)} %`;

/** strain is what a share means at a glance. */
export const strain = (share) => (share > 0.9 ? 'bad' : share > 0.75 ? 'busy' : 'good');

/** load shows what a node can run out of, what it is nearest to first. */
export function load(l) {
  return el('div', {},
    el('p', { title: l.formula }, flag(strain(l.load), `Load ${percent(l.load)}`), l.limit ? `, by ${l.limit}` : null, ` · load average ${[l.cpu.load1, l.cpu.load5, l.cpu.load15].map((n) => n.toFixed(2)).join(', ')} on ${l.cpu.cores} cores`),
    grid('Load of the node', ['Resource', 'In use', 'What'], (l.parts ?? []).map((p) => [el('strong', {}, p.name), el('span', { class: 'share' }, bar(p.used), percent(p.used)), p.text])),
    part(Object.entries(l.pressure ?? {}), (list) => grid('Pressure: the share of time in which tasks waited', ['Pressure', 'Some, 10 s', 'Some, 60 s', 'All, 10 s', 'All, 60 s'],
      list.map(([name, p]) => [el('strong', {}, name), ...[p.some10, p.some60, p.full10, p.full60].map((n) => `${n.toFixed(1)} %`)]))),
    part((l.network ?? []).filter((n) => n.errors > 0 || n.drops > 0), (list) => grid('Network errors', ['Interface', 'Errors', 'Drops', 'Errors per second', 'Drops per second'],
      list.map((n) => [el('strong', {}, n.name), String(n.errors), String(n.drops), n.errorsPerSecond.toFixed(1), n.dropsPerSecond.toFixed(1)]))),
    (l.problems ?? []).map((text) => el('p', {}, flag('busy', text))));
}

const part = (list, make) => (list.length ? make(list) : null);

function bar(share) {
  const fill = el('span', { class: 'fill', 'data-tone': strain(share) });
  fill.style.width = `${Math.min(100, 100 * share)}%`;
  return el('span', { class: 'meter', 'aria-hidden': 'true' }, fill);
}

/** podLoad shows what a pod uses. */
export const podLoad = (l) => facts([
  ['CPU', `${l.cpu.toFixed(3)} cores`], ['Memory', bytes(l.memory)], ['Processes', String(l.pids)],
  ['Throttled', l.throttled ? flag(strain(l.throttled), `${percent(l.throttled)} of the periods`) : null], ['OOM kills', l.oomKills ? flag('bad', String(l.oomKills)) : null],
]);
