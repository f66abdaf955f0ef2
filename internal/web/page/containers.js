// The containers of a pod, and what their probes have found.

import { el } from './dom.js';
import { grid } from './grid.js';
import { moment } from './moments.js';
import { sign } from './states.js';

export function containers({ containerDetails: list = [] }, now) {
  return grid('Containers', ['Container', 'Kind', 'State', 'Since', 'Ready', 'Restarts', 'Last exit', 'Next start', 'Message'],
    list.map((c) => [
      el('strong', {}, c.name), c.kind, state(c), moment(c.since, now), flag(c.ready ? 'good' : 'bad', c.ready ? 'yes' : 'no'),
      String(c.restarts), c.exitCode === undefined ? '–' : String(c.exitCode), moment(c.nextStart, now) ?? '–', c.message ?? '',
    ]));
}

function state(c) {
  const mood = c.state === 'running' ? (c.ready ? 'good' : 'busy') : c.reason === 'Completed' ? 'done' : 'bad';
  return flag(mood, c.reason ? `${c.state}: ${c.reason}` : c.state);
}

/** flag is a text, or an element, with a sign before it. */
export const flag = (tone, content) => el('span', { class: 'flag', 'data-tone': tone }, el('span', { class: 'sign' }, sign(tone)), ' ', content);

export function probes({ containerDetails: list = [] }, now) {
  const rows = list.flatMap((c) => (c.probes ?? []).map((p) => [
    el('strong', {}, c.name), p.kind, verdict(p), count(p), moment(p.at, now) ?? '–', p.at ? '–' : moment(p.notBefore, now) ?? '–', p.answer ?? '–',
  ]));
  if (rows.length === 0) return el('p', { class: 'quiet' }, 'No container has a probe.');
  return grid('Probes', ['Container', 'Probe', 'Result', 'In a row', 'At', 'First due', 'Last answer'], rows);
}

function verdict(p) {
  if (p.ok === undefined || p.ok === null) return flag('busy', 'no result in this run');
  return p.ok ? flag('good', 'succeeds') : flag('bad', 'fails');
}

const count = (p) => (p.failures > 0 ? `${p.failures} failed` : p.successes > 0 ? `${p.successes} succeeded` : '–');
