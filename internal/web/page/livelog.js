// The log of a container, read again and again while it is open. What it says is text, whatever it is.

import { ask, podPath } from './ask.js';
import { el, setText } from './dom.js';

/** period is how often an open log is read, in milliseconds. */
const period = 2000;

export class LiveLog {
  #timer = null;
  #runs = '';

  constructor({ namespace, name }) {
    this.path = `${podPath(namespace, name)}/log`;
    this.choice = el('select', { 'aria-label': 'Container', change: () => this.#read() });
    this.previous = el('input', { type: 'checkbox', change: () => this.#read() });
    this.note = el('span', { class: 'quiet', role: 'status' });
    this.text = el('pre', { tabindex: '0', 'aria-label': 'Log' });
    this.element = el('details', { class: 'live log', toggle: () => this.#read() }, el('summary', {}, 'Follow the log of a container'),
      el('p', { class: 'choice' }, this.choice, ' ', el('label', {}, this.previous, ' the run before'), ' ', this.note), this.text);
  }

  /** show offers the containers, the one that is in trouble first chosen; it reads at once if a run has begun. */
  show(list) {
    const runs = JSON.stringify(list.map((c) => [c.name, c.restarts, c.state]));
    if (runs === this.#runs) return;
    this.#runs = runs;
    const chosen = this.choice.value || (list.find((c) => !c.ready && c.kind !== 'init') ?? list.find((c) => !c.ready) ?? list[0])?.name;
    this.choice.replaceChildren(...list.map((c) => el('option', { value: c.name, selected: c.name === chosen }, c.name)));
    this.#read();
  }

  // #read reads the log, and again after the period as long as it is open and the page is on the screen.
  async #read() {
    clearTimeout(this.#timer);
    if (!this.element.open || !this.choice.value) return;
    const container = this.choice.value;
    const query = new URLSearchParams({ container, previous: String(this.previous.checked) });
    const asked = query.toString();
    const log = document.hidden ? undefined : await ask(`${this.path}?${query}`);
    const now = new URLSearchParams({ container: this.choice.value, previous: String(this.previous.checked) }).toString();
    if (asked === now && log !== undefined) this.#write(log);
    if (!this.element.isConnected && log !== undefined) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#read(), period);
  }

  #write(log) {
    const { text } = this;
    const atEnd = text.scrollTop + text.clientHeight >= text.scrollHeight - 4;
    setText(this.note, log === null ? 'There is no such log.' : log.lines.length === 0 ? 'The log is empty.' : `The last ${log.lines.length} lines, read every ${period / 1000} s.`);
    if (setText(text, (log?.lines ?? []).join('\n')) && atEnd) text.scrollTop = text.scrollHeight;
  }
}
