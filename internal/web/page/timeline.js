// The timeline of a pod: a lane for the phase, each condition, each container and each kind of its probes, and for
// when the API server was behind. Elements are made when the history changes; time alone only moves them.

import { el, setText } from './dom.js';
import { lanes, rangeFor, ranges, ticks } from './lanes.js';
import { clock, full, isUTC, span } from './times.js';

export class Timeline {
  #placed = []; // {element, start, end}, to be laid out
  #chosen = null;
  #detail = null;

  constructor() {
    this.buttons = ranges.map((range) => el('button', { type: 'button', click: () => this.#choose(range) }, range.label));
    this.axis = el('div', { class: 'axis', 'aria-hidden': 'true' });
    this.lanes = el('ul', { class: 'lanes' });
    this.element = el('div', { class: 'timeline' },
      el('div', { class: 'ranges', role: 'group', 'aria-label': 'Range of the timeline' }, this.buttons), this.lanes, this.axis);
  }

  /** update returns the element that shows the history of a pod. */
  update(detail, now) {
    this.#detail = detail;
    if (!detail.history?.length) return el('p', { class: 'quiet' }, 'Nothing has been recorded.');
    const end = this.#end(now);
    this.#placed = [];
    this.lanes.replaceChildren(...lanes(detail, end).map((lane) => this.#lane(lane, now)));
    this.layout(now);
    return this.element;
  }

  #end(now) {
    return this.#detail.gone ? Date.parse(this.#detail.gone) : now;
  }

  #choose(range) {
    this.#chosen = range;
    this.layout(this.now);
  }

  #lane(lane, now) {
    const open = (segment) => segment.end >= this.#end(now);
    const track = el('div', { class: 'track' }, [
      ...lane.segments.map((s) => this.#place(el('div', { class: 'segment', 'data-tone': s.tone, title: tip(s, now) }, s.text), s.start, open(s) ? null : s.end)),
      ...lane.marks.map((m) => this.#place(el('div', { class: 'mark', 'data-tone': m.tone, title: tip(m, now) }), m.at, m.at)),
    ]);
    return el('li', { class: 'lane', 'data-kind': lane.kind, 'data-lane': lane.label },
      el('span', { class: 'label', title: lane.label }, lane.label), el('span', { class: 'spoken' }, spoken(lane, now)), track);
  }

  #place(element, start, end) {
    this.#placed.push({ element, start, end });
    return element;
  }

  /** layout puts everything where it belongs at this time. */
  layout(now) {
    this.now = now;
    if (!this.#detail) return;
    const end = this.#end(now);
    const range = this.#chosen ?? rangeFor(this.#detail.history ?? [], end);
    this.buttons.forEach((button, i) => button.setAttribute('aria-pressed', String(ranges[i] === range)));
    const first = Math.min(end - 1000, ...this.#placed.map((p) => p.start));
    const start = Math.max(first, end - range.length);
    const left = (at) => (100 * (Math.max(at, start) - start)) / (end - start);
    for (const placed of this.#placed) {
      const until = placed.end ?? end;
      const visible = until >= start;
      placed.element.hidden = !visible;
      if (!visible) continue;
      placed.element.style.left = `${left(placed.start)}%`;
      placed.element.style.width = `${left(until) - left(placed.start)}%`;
    }
    this.#drawAxis(start, end, left, now);
  }

  #drawAxis(start, end, left, now) {
    const zone = isUTC() ? 0 : -new Date(end).getTimezoneOffset() * 60_000;
    const most = this.element.clientWidth > 640 ? 6 : 3;
    const at = ticks(start, end, most, zone).filter((instant) => left(instant) < 95); // the text of a later one would be cut
    while (this.axis.children.length > at.length) this.axis.lastElementChild.remove();
    while (this.axis.children.length < at.length) this.axis.append(el('span', { class: 'tick' }));
    at.forEach((instant, i) => {
      const tick = this.axis.children[i];
      setText(tick, clock(instant, now));
      tick.style.left = `${left(instant)}%`;
    });
  }
}

function tip({ start, end, at, text, note }, now) {
  const when = at !== undefined ? full(at) : `${full(start)} – ${end >= now ? 'now' : full(end)} (${span(end - start)})`;
  return [text, when, note].filter(Boolean).join('\n');
}

// spoken is the lane for those who do not see it.
function spoken({ segments, marks }, now) {
  const last = segments.at(-1);
  const changes = segments.length + marks.length;
  return last ? `${last.text} since ${clock(last.start, now)}, ${changes} entries` : `${changes} entries`;
}
