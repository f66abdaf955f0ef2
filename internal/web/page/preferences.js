// What the reader has chosen, kept in the browser: theme and time zone.

import { byId, setText } from './dom.js';
import { isUTC, useUTC, zone } from './times.js';

const themes = ['auto', 'light', 'dark'];

export function preferences(onZone) {
  showTheme();
  byId('theme').addEventListener('click', nextTheme);
  useUTC(load('zone') === 'utc');
  showZone();
  byId('zone').addEventListener('click', () => nextZone(onZone));
  return { nextTheme, nextZone: () => nextZone(onZone) };
}

function nextTheme() {
  const now = document.documentElement.dataset.theme ?? 'auto';
  const next = themes[(themes.indexOf(now) + 1) % themes.length];
  save('theme', next);
  document.documentElement.dataset.theme = next;
  showTheme();
}

function showTheme() {
  setText(byId('theme'), `Theme: ${document.documentElement.dataset.theme ?? 'auto'}`);
}

function nextZone(onZone) {
  useUTC(!isUTC());
  save('zone', isUTC() ? 'utc' : 'local');
  showZone();
  onZone();
}

function showZone() {
  setText(byId('zone'), `Time: ${zone(Date.now())}`);
}

// A browser may forbid storage; then a choice lasts as long as the page.
function load(name) {
  try { return localStorage.getItem(name); } catch { return null; }
}

function save(name, value) {
  try { localStorage.setItem(name, value); } catch { /* see above */ }
}
