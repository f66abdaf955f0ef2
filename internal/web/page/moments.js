// An instant in a page: the time of day, and how long ago, with date and zone on hover.

import { el } from './dom.js';
import { ticking } from './ticking.js';
import { clock, full, span } from './times.js';

export function moment(instant, now) {
  if (!instant) return null;
  const at = Date.parse(instant);
  const distance = (time) => (at > time ? `in ${span(at - time)}` : `${span(time - at)} ago`);
  return el('time', { datetime: instant, title: full(instant) }, `${clock(instant, now)} `, ticking(distance, now, 'quiet'));
}
