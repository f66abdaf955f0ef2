// What happened, the newest first.

import { el } from './dom.js';
import { grid } from './grid.js';
import { clock, full, lag } from './times.js';

export function historyTable(records, now) {
  if (!records?.length) return el('p', { class: 'quiet' }, 'Nothing has been recorded.');
  return grid('History', ['Observed', 'Accepted after', 'What', 'Change', 'Reason', 'Message'], [...records].reverse().map((r) => [
    el('time', { datetime: r.observed, title: full(r.observed) }, clock(r.observed, now)),
    r.accepted ? lag(Date.parse(r.accepted) - Date.parse(r.observed)) : '–',
    [r.kind, r.subject, r.container].filter(Boolean).join(' '),
    r.from && r.from !== r.to ? `${r.from} → ${r.to || 'none'}` : r.to || 'none',
    r.reason ?? '', [r.message, r.dropped ? `(${r.dropped} similar ones before this were dropped)` : ''].filter(Boolean).join(' '),
  ]));
}
