// Whether what is shown is live. If not, the page says since when, and everything that could be outdated is dimmed.

import { byId, setAttribute, setText } from './dom.js';
import { skew } from './servertime.js';
import { clock, span } from './times.js';

const tones = { live: 'good', connecting: 'busy', lost: 'bad', refused: 'busy' };

export class Connection {
  state = { name: 'connecting' };

  constructor() {
    this.pill = byId('connection');
    this.banner = byId('lost');
  }

  get live() { return this.state.name === 'live'; }

  show(state) {
    this.state = state;
    document.documentElement.dataset.connection = state.name;
    setAttribute(this.pill, 'data-tone', tones[state.name]);
    this.tick();
  }

  tick() {
    const { name, since, error } = this.state;
    const now = Date.now();
    setText(this.pill, { live: '● Live', connecting: '◐ Connecting', lost: '▲ Not live', refused: '◐ No data' }[name]);
    const skewed = name === 'live' && skew() !== 0;
    this.banner.hidden = !(name === 'lost' || (name === 'connecting' && error) || skewed);
    if (this.banner.hidden) return;
    setText(this.banner, skewed ? clocks() : lost(since, error, now));
    setAttribute(this.banner, 'data-tone', skewed ? 'busy' : 'bad');
  }
}

function lost(since, error, now) {
  const what = since ? `Connection lost since ${clock(since, now)} (${span(now - since)}). What is shown is as of then.` : 'statusd cannot be reached.';
  return `${what} Trying again${error ? `; last error: ${error}` : ''}.`;
}

function clocks() {
  const size = span(Math.abs(skew()));
  return `The clock of this browser is ${size} ${skew() > 0 ? 'behind' : 'ahead of'} that of statusd. Ages are computed with the clock of statusd.`;
}
