// Parts of a page that are made again only when what they show has changed.

import { el } from './dom.js';

/** Sections keeps elements by title: put replaces the content of one if its key is another one. */
export class Sections {
  #known = new Map();

  constructor(parent) { this.parent = parent; }

  put(title, key, make) {
    let section = this.#known.get(title);
    if (!section) {
      section = { body: el('div', { class: 'body' }) };
      this.#known.set(title, section);
      this.parent.append(el('section', { 'aria-label': title }, el('h2', {}, title), section.body));
    }
    if (section.key === key) return;
    section.key = key;
    section.body.replaceChildren(make());
  }

  clear() {
    this.#known.clear();
    this.parent.replaceChildren();
  }
}
