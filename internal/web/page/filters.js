// What the table is filtered and sorted by: a search, the state, the namespace. All of it is in the address.

import { byId, el, setAttribute, setText } from './dom.js';
import { order, sign, stateOf, tone, word } from './states.js';

export class Filters {
  value = { text: '', state: '', namespace: '' };

  constructor(onChange) {
    this.onChange = onChange;
    this.search = byId('search');
    this.states = byId('states');
    this.namespaces = byId('namespace');
    this.buttons = new Map();
    this.search.addEventListener('input', () => this.#set({ text: this.search.value }));
    this.namespaces.addEventListener('change', () => this.#set({ namespace: this.namespaces.value }));
  }

  #set(change) {
    this.show({ ...this.value, ...change });
    this.onChange(this.value);
  }

  /** show takes the filter of an address. */
  show(value) {
    this.value = value;
    if (this.search.value !== value.text) this.search.value = value.text;
    this.#press();
    this.#choose();
  }

  /** count offers the states and namespaces that there are. */
  count(pods) {
    const counts = new Map([['', 0]]);
    const namespaces = new Set();
    for (const pod of pods) {
      const state = stateOf(pod);
      if (!pod.gone) counts.set('', counts.get('') + 1);
      counts.set(state, (counts.get(state) ?? 0) + 1);
      namespaces.add(pod.namespace);
    }
    for (const state of [...order, ...counts.keys()]) this.#count(state, counts.get(state) ?? 0);
    this.#offer([...namespaces].sort());
    this.#press();
  }

  #count(state, count) {
    let button = this.buttons.get(state);
    if (!button && count === 0) return;
    if (!button) {
      button = el('button', { type: 'button', 'data-state': state, 'data-tone': state ? tone(state) : null, click: () => this.#set({ state: this.value.state === state ? '' : state }) });
      this.buttons.set(state, button);
      this.#arrange();
    }
    setText(button, state ? `${sign(tone(state))} ${word(state)} ${count}` : `All ${count}`);
    button.hidden = count === 0 && state !== '' && this.value.state !== state;
  }

  #arrange() {
    const rank = (state) => (state === '' ? -2 : order.indexOf(state));
    const sorted = [...this.buttons].sort(([a], [b]) => rank(a) - rank(b));
    this.states.replaceChildren(...sorted.map(([, button]) => button));
  }

  #press() {
    for (const [state, button] of this.buttons) setAttribute(button, 'aria-pressed', String(state === this.value.state));
  }

  #offer(names) {
    const all = [...new Set([...names, this.value.namespace])].filter(Boolean).sort();
    const known = [...this.namespaces.options].slice(1).map((option) => option.value);
    if (known.join('\n') !== all.join('\n')) {
      this.namespaces.replaceChildren(el('option', { value: '' }, 'All namespaces'), ...all.map((name) => el('option', { value: name }, name)));
    }
    this.#choose();
  }

  #choose() {
    if (this.namespaces.value !== this.value.namespace) this.namespaces.value = this.value.namespace;
  }
}
