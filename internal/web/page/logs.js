// What the logs of kernel, kubelet and runtime amount to.

import { el } from './dom.js';
import { flag } from './containers.js';
import { grid } from './grid.js';
import { moment } from './moments.js';

const tones = { info: 'done', warning: 'busy', error: 'bad', critical: 'bad' };

export function logs(l, now) {
  const wrong = (l.sources ?? []).filter((s) => s.error || s.lost > 0);
  const lasting = (l.conditions ?? []).filter((c) => c.true);
  const problems = [...(l.problems ?? [])].reverse();
  return el('div', {},
    wrong.map((s) => el('p', {}, flag('busy', s.error ? `${s.name} is not read: ${s.error}` : `${s.name}: ${s.lost} lines were gone before they could be read`))),
    lasting.map((c) => el('p', {}, flag('bad', `${c.type} ${c.reason}`), ' since ', moment(c.since, now), c.text ? `: ${c.text}` : null)),
    problems.length === 0 ? el('p', { class: 'quiet' }, 'Nothing was found.')
      : grid('Problems found in logs', ['Found', 'Log', 'Reason', 'Times', 'Process', 'Line'], problems.map((p) => [
        moment(p.at, now), p.origin, flag(tones[p.severity] ?? 'bad', p.reason), String(p.count), victim(p.victim), el('code', {}, p.text)])));
}

/** victim names the process that was hit, and whose it is. */
export const victim = (v) => [v?.process, v?.pid ? `pid ${v.pid}` : '', v?.uid ? `pod ${v.uid}` : ''].filter(Boolean).join(', ');
