// One watch of the query API that stays open: it reconnects, resumes where it was, and knows
// when what is shown is no longer live.

import { Parser } from './sse.js';
import { observe } from './servertime.js';

// The server sends a heartbeat at least every 15 seconds. After two of them are missing the
// connection counts as lost, though no error has been seen.
export const silence = 40_000;

// Waits between tries: short, because the server is on the same machine or a tunnel away.
const waits = [100, 250, 500, 1000, 2000];

/**
 * Stream calls
 *   onEvent(type, data)  for each event, in order,
 *   onState(state)       with {name: 'connecting' | 'live' | 'lost' | 'refused', since, error}.
 * 'lost' has since: when the server was heard of last. 'refused' is an answer that trying
 * again at once does not change, such as 404; it is tried on slowly.
 */
export class Stream {
  constructor(url, { onEvent, onState, fetch = globalThis.fetch.bind(globalThis), clock = Date.now }) {
    Object.assign(this, { url, onEvent, onState, fetch, clock });
    this.revision = null;
    this.heard = null; // when the server was heard of last
    this.tries = 0;
    this.state = { name: 'closed' };
    this.caughtUp = false;
  }

  open() {
    if (this.abort) return;
    this.#set({ name: 'connecting' });
    this.#connect();
  }

  close() {
    this.abort?.abort();
    this.abort = null;
    clearTimeout(this.timer);
    clearTimeout(this.watchdog);
    this.state = { name: 'closed' };
  }

  /** retry connects at once if the stream waits for its next try. */
  retry() {
    if (this.abort || this.state.name === 'closed') return;
    clearTimeout(this.timer);
    this.#connect();
  }

  async #connect() {
    const abort = new AbortController();
    this.abort = abort;
    this.caughtUp = false;
    this.#listen(abort);
    try {
      const response = await this.fetch(this.#address(), { signal: abort.signal, cache: 'no-store', headers: { Accept: 'text/event-stream' } });
      observe(response.headers.get('Date'));
      if (!response.ok) throw await refusal(response);
      await this.#read(response.body.getReader(), abort);
      throw new Error('the server closed the connection');
    } catch (error) {
      if (this.abort === abort) this.#failed(abort.signal.reason instanceof Silence ? abort.signal.reason : error);
    }
  }

  #address() {
    if (this.revision === null) return this.url;
    return `${this.url}${this.url.includes('?') ? '&' : '?'}since=${encodeURIComponent(this.revision)}`;
  }

  async #read(reader, abort) {
    const parser = new Parser();
    const decoder = new TextDecoder();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || this.abort !== abort) return;
      this.tries = 0;
      this.#listen(abort);
      this.heard = this.clock();
      for (const event of parser.feed(decoder.decode(value, { stream: true }))) this.#take(event);
      this.#set({ name: this.caughtUp ? 'live' : 'connecting' });
    }
  }

  // What is shown is live once the watch has caught up: a list, or what was missed, ends with synced;
  // the watch of one pod begins with everything that is known of it. A reset begins another list.
  #take({ type, id, data }) {
    if (type === 'reset') this.caughtUp = false;
    if (type === 'synced' || type === 'detail') this.caughtUp = true;
    this.onEvent(type, data === '' ? null : JSON.parse(data));
    if (id !== null) this.revision = id;
  }

  #listen(abort) {
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(() => abort.abort(new Silence()), silence);
  }

  #failed(error) {
    clearTimeout(this.watchdog);
    this.abort = null;
    const name = error instanceof Refusal ? 'refused' : this.heard === null ? 'connecting' : 'lost';
    this.#set({ name, since: this.heard, error: error.message, status: error.status });
    const wait = waits[Math.min(this.tries++, waits.length - 1)];
    this.timer = setTimeout(() => this.#connect(), name === 'refused' ? waits.at(-1) : wait);
  }

  #set(state) {
    const { name, error } = this.state;
    this.state = state;
    if (name !== state.name || error !== state.error) this.onState(state);
  }
}

class Silence extends Error {
  constructor() { super('nothing was heard from the server'); }
}

class Refusal extends Error {}

// refusal is the error that an answer other than 200 means. A server that is overloaded or
// about to stop is one that was lost; what it says of the request itself is final for now.
async function refusal(response) {
  let message = `${response.status} ${response.statusText}`;
  try {
    message = (await response.json()).message || message;
  } catch { /* no Status object: the code says enough */ }
  if (response.status === 429 || response.status >= 500) return new Error(message);
  return Object.assign(new Refusal(message), { status: response.status });
}
