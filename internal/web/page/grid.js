// A plain table with a header. On a narrow screen each row becomes a block, with the title of the column before each value.

import { el } from './dom.js';

/** grid makes a table: titles, then rows of cells, each a text, an element or null. */
export function grid(caption, titles, rows) {
  return el('table', { class: 'grid', role: 'table' },
    el('caption', { class: 'spoken' }, caption),
    el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, titles.map((title) => el('th', { scope: 'col', role: 'columnheader' }, title)))),
    el('tbody', { role: 'rowgroup' }, rows.map((row) => el('tr', { role: 'row' }, row.map((cell, i) => el('td', { role: 'cell', 'data-label': titles[i] }, cell))))));
}

/** facts makes a list of names and values; those without a value are left out. */
export function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== '');
  return el('dl', { class: 'facts' }, known.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))));
}
