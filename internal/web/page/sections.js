// Parts of a page that are made again only when what they show has changed.

import { el } from './dom.js';

/** Sections keeps elements by title: put replaces the content of one if its key is another one. Those in order stand in that order, whenever they come. */
export class Sections {
  #known = new Map();

  constructor(parent, order = []) {
    this.parent = parent;
    this.order = order;
  }

  put(title, key, make) {
    let section = this.#known.get(title);
    if (!section) {
      section = { body: el('div', { class: 'body' }) };
      section.element = el('section', { 'aria-label': title }, el('h2', {}, title), section.body);
      this.parent.insertBefore(section.element, this.#after(title));
      this.#known.set(title, section);
    }
    if (section.key === key) return;
    section.key = key;
    section.body.replaceChildren(make());
  }

  /** drop removes a section that has nothing to show any more. */
  drop(title) {
    this.#known.get(title)?.element.remove();
    this.#known.delete(title);
  }

  // #after is the first section that comes after a title, null if none does.
  #after(title) {
    const place = this.order.indexOf(title);
    if (place < 0) return null;
    for (const later of this.order.slice(place + 1)) if (this.#known.has(later)) return this.#known.get(later).element;
    return null;
  }

  clear() {
    this.#known.clear();
    this.parent.replaceChildren();
  }
}
