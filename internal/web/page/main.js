// The page: the address chooses a view, one watch feeds it, and what changed is drawn once per frame.

import { ask, coalesced } from './ask.js';
import { byId, setAttribute, setText } from './dom.js';
import { Connection } from './connection.js';
import { Filters } from './filters.js';
import { keys } from './keys.js';
import { NodeView } from './nodeview.js';
import { Pods } from './pods.js';
import { PodView } from './podview.js';
import { preferences } from './preferences.js';
import { parse, podsHref } from './route.js';
import { now } from './servertime.js';
import { Stream } from './stream.js';
import { showSort, Table } from './table.js';
import { tick as tickBelow } from './ticking.js';
import { every, restless, reworded } from './wording.js';

const pods = new Pods();
const table = new Table(byId('pods'));
const node = new NodeView();
const pod = new PodView(() => draw());
const connection = new Connection();
const filters = new Filters(() => filtered());
const help = byId('help');

let route = parse(location.hash);
let sort = { column: 'state', reverse: false };
let tableHref = '#/'; // where Escape goes back to

// The table and the node share a watch, which goes on from where it was when the reader comes back.
const whole = watch('apis/v1/watch', (type, data) => {
  pods.handle(type, data);
  node.handle(type, data);
  if (type === 'gone' || type === 'synced') askForGone();
});
let stream = null;

function watch(url, onEvent) {
  const made = new Stream(url, {
    onEvent: (type, data) => { onEvent(type, data); draw(); },
    onState: (state) => { if (made === stream) stateChanged(state); },
  });
  return made;
}

function stateChanged(state) {
  connection.show(state);
  if (state.name === 'refused' && route.view === 'pod') pod.refused(state);
  render(); // at once: what is called live must be what is shown
}

/** follow makes a stream the one that feeds the page. */
function follow(next) {
  if (stream !== next) stream?.close();
  stream = next;
  if (!document.hidden) stream.open();
}

let drawing = false;

function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => { drawing = false; render(); });
}

function render() {
  const at = now();
  if (route.view === 'pod') pod.render(at);
  if (route.view === 'node') node.renderPage(at);
  if (route.view === 'pods') renderTable(at);
  title();
}

function renderTable(at) {
  node.renderStrip(at);
  const changed = pods.take();
  if (changed.size > 0) {
    table.apply(changed, pods.all, at);
    filters.count(pods.all.values());
  }
  emptiness();
}

function emptiness() {
  const all = pods.present.length;
  const text = table.shown > 0 ? '' : all > 0 ? 'No pod matches the filter.' : connection.live ? 'This node has no pods.' : '';
  setText(byId('empty'), text);
  setText(byId('count'), table.shown === all || filters.value.state === 'Gone' ? '' : `${table.shown} of ${all} pods`);
}

function title() {
  const all = pods.present;
  const troubled = all.filter((p) => p.state !== 'Ready' && p.state !== 'Succeeded').length;
  const untrue = all.filter((p) => p.drift).length;
  const what = route.view === 'pod' ? pod.key : route.view === 'node' ? 'node' : `${troubled} of ${all.length} not Ready${untrue ? `, ${untrue} not true` : ''}`;
  const text = `${connection.live ? '' : '(not live) '}${what} · statusd`;
  if (document.title !== text) document.title = text;
}

function filtered() {
  table.filter(filters.value);
  history.replaceState(null, '', podsHref(filters.value, sort));
  tableHref = location.hash || '#/';
  emptiness();
}

function sortBy(column) {
  sort = { column, reverse: sort.column === column ? !sort.reverse : false };
  table.sort(sort);
  showSort(byId('head'), sort);
  filtered();
}

function navigate() {
  const before = route;
  route = parse(location.hash);
  for (const view of ['pods', 'node', 'pod']) byId(`${view}-view`).hidden = view !== route.view;
  for (const link of document.querySelectorAll('nav a')) setAttribute(link, 'aria-current', link.dataset.view === route.view ? 'page' : null);
  if (route.view === 'pod') {
    pod.show(route);
    const url = pod.watch;
    follow(watch(url, (type, data) => pod.handle(type, data)));
    window.scrollTo(0, 0);
  } else {
    follow(whole);
  }
  if (route.view === 'pods') showTable(before);
  render();
}

function showTable(before) {
  tableHref = location.hash || '#/';
  filters.show(route.filter);
  sort = route.sort;
  table.sort(sort);
  showSort(byId('head'), sort);
  table.filter(route.filter);
  if (before.view === 'pod') table.focus(`${before.namespace}/${before.name}`);
}

// Ages and lags go on only while the page is live: those of a lost connection stay as they were.
function tick() {
  connection.tick();
  if (!connection.live) return;
  const at = now();
  if (route.view === 'pod') pod.tick(at);
  else tickBelow(byId(`${route.view}-view`), at);
  if (route.view === 'pods') table.tick(at);
}

/** reword asks again for what grows old without an event. */
async function reword() {
  if (!connection.live || document.hidden) return;
  if (route.view === 'pod') await pod.refresh();
  else if (route.view === 'node') await node.refresh();
  else await rewordTable();
  draw();
}

// Pods that are gone come with no event; the list has them for an hour.
const askForGone = coalesced(async () => {
  const answer = await ask('apis/v1/pods?gone=true');
  if (answer) pods.setGone(answer.items.filter((pod) => pod.gone));
  draw();
});

async function rewordTable() {
  for (const state of restless(pods.present)) {
    const answer = await ask(`apis/v1/pods?state=${encodeURIComponent(state)}`);
    for (const item of reworded(answer?.items ?? [], pods.all)) pods.handle('pod', item);
  }
}

function back() {
  if (route.view !== 'pods') location.hash = tableHref;
}

const chosen = preferences(() => { table.redraw(now()); render(); });

keys({
  '/': () => { if (route.view !== 'pods') location.hash = tableHref; filters.search.focus(); },
  '?': () => help.showModal(),
  j: () => step(1), ArrowDown: () => step(1), k: () => step(-1), ArrowUp: () => step(-1),
  g: () => step(-Infinity), G: () => step(Infinity), Home: () => step(-Infinity), End: () => step(Infinity),
  n: () => { location.hash = '#/node'; }, p: () => { location.hash = tableHref; },
  t: () => chosen.nextTheme(), u: () => chosen.nextZone(),
  Escape: () => back(),
}, {
  Escape: () => { if (filters.search.value) { filters.search.value = ''; filters.search.dispatchEvent(new Event('input')); } document.activeElement.blur(); },
  Enter: () => step(1), ArrowDown: () => step(1),
});

// step moves in the table; the other views scroll as the browser does.
function step(by) {
  if (route.view !== 'pods') return false;
  table.step(by);
  return true;
}

byId('help-button').addEventListener('click', () => help.showModal());
byId('help-close').addEventListener('click', () => help.close());
byId('back').addEventListener('click', (event) => { event.preventDefault(); back(); });
for (const button of document.querySelectorAll('th button')) button.addEventListener('click', () => sortBy(button.closest('th').dataset.column));
window.addEventListener('hashchange', navigate);
window.addEventListener('online', () => stream.retry());
// A hidden page needs no connection, of which a browser allows few per server. What it shows when it
// is seen again is marked as not live until the watch has caught up.
document.addEventListener('visibilitychange', () => {
  if (document.hidden) stream.close();
  else { connection.show({ name: 'connecting' }); stream.open(); }
});
// The titles of the columns stay below the header, however high that is.
new ResizeObserver(() => {
  document.documentElement.style.setProperty('--header', `${document.querySelector('header').offsetHeight}px`);
}).observe(document.querySelector('header'));
setInterval(tick, 1000);
setInterval(reword, every);
navigate();
