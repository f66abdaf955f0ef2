// The table of pods. An event changes the cells of one row, and moves it if its place is another
// one; the other rows are not touched.

import { setAttribute, setText } from './dom.js';
import { comparator, matches, place } from './select.js';
import { Row } from './row.js';

export class Table {
  #rows = new Map();
  #sorted = []; // rows in the order of the table, also those that the filter hides
  #compare = comparator({ column: 'state' });
  #filter = {};

  constructor(body) {
    this.body = body;
    this.shown = 0;
  }

  /** apply takes over the pods that have changed: key → pod, or undefined if it is gone. */
  apply(keys, pods, now) {
    for (const key of keys) {
      const pod = pods.get(key);
      if (!pod) this.#remove(key);
      else this.#put(key, pod, now);
    }
  }

  #put(key, pod, now) {
    let row = this.#rows.get(key);
    if (!row) {
      row = new Row(key, pod);
      this.#rows.set(key, row);
      row.element.hidden = true;
      this.#insert(row);
    } else if (this.#compare(row.pod, pod) !== 0) {
      this.#sorted.splice(this.#sorted.indexOf(row), 1);
      row.update(pod);
      this.#insert(row);
    } else {
      row.update(pod);
    }
    row.tick(now);
    this.#show(row, matches(pod, this.#filter));
  }

  #remove(key) {
    const row = this.#rows.get(key);
    if (!row) return;
    this.#show(row, false);
    this.#rows.delete(key);
    this.#sorted.splice(this.#sorted.indexOf(row), 1);
    row.element.remove();
  }

  #insert(row) {
    const at = place(this.#sorted, row, (a, b) => this.#compare(a.pod, b.pod));
    const next = this.#sorted[at]?.element ?? null;
    this.#sorted.splice(at, 0, row);
    if (row.element.parentNode !== this.body || row.element.nextElementSibling !== next) this.#move(row, next);
  }

  // An element that is moved loses the focus; the reader keeps the place.
  #move(row, next) {
    const focused = row.element.contains(document.activeElement);
    this.body.insertBefore(row.element, next);
    if (focused) row.link.focus({ preventScroll: true });
  }

  #show(row, visible) {
    if (row.element.hidden === !visible) return;
    row.element.hidden = !visible;
    this.shown += visible ? 1 : -1;
  }

  sort(by) {
    this.#compare = comparator(by);
    this.#sorted.sort((a, b) => this.#compare(a.pod, b.pod));
    const focused = this.current();
    this.body.append(...this.#sorted.map((row) => row.element));
    focused?.link.focus({ preventScroll: true });
  }

  filter(by) {
    this.#filter = by;
    for (const row of this.#sorted) this.#show(row, matches(row.pod, by));
  }

  tick(now) {
    for (const row of this.#sorted) if (!row.element.hidden) row.tick(now);
  }

  /** redraw writes everything again, for another time zone. */
  redraw(now) {
    for (const row of this.#sorted) { row.update(row.pod); row.tick(now); }
  }

  /** current is the row that has the focus. */
  current() {
    const element = document.activeElement?.closest?.('tr');
    return element ? this.#rows.get(element.dataset.key) : undefined;
  }

  /** focus goes to the row of a pod, if it is shown. */
  focus(key) {
    const row = this.#rows.get(key);
    if (row && !row.element.hidden) row.link.focus();
  }

  /** step moves the focus by some rows, from the last one that had it. */
  step(by) {
    const visible = this.#sorted.filter((row) => !row.element.hidden);
    if (visible.length === 0) return;
    const from = this.current() ?? this.#rows.get(this.last);
    const found = visible.indexOf(from);
    const index = found >= 0 ? found : by > 0 ? -1 : visible.length;
    const to = Math.min(Math.max(index + by, 0), visible.length - 1);
    this.last = visible[to].key;
    visible[to].link.focus();
  }
}

/** showSort marks the column that the table is sorted by. */
export function showSort(head, { column, reverse }) {
  for (const th of head.querySelectorAll('th[data-column]')) {
    const here = th.dataset.column === column;
    setAttribute(th, 'aria-sort', here ? (reverse ? 'descending' : 'ascending') : null);
    setText(th.querySelector('.direction'), here ? (reverse ? '↑' : '↓') : '');
  }
}
