// The node: a strip above the table of pods, and a page with everything.

import { alerts } from './alerts.js';
import { ask } from './ask.js';
import { byId, el, setText } from './dom.js';
import { flag } from './containers.js';
import { differences } from './differences.js';
import { facts, grid } from './grid.js';
import { historyTable } from './historytable.js';
import { load } from './load.js';
import { logs } from './logs.js';
import { moment } from './moments.js';
import { healthy } from './states.js';
import { isObserved, kubelet, sides, strip } from './observed.js';
import { amount, parse } from './quantity.js';
import { now as clockNow } from './servertime.js';
import { Sections } from './sections.js';
import { ticking } from './ticking.js';
import { isUTC, lag, span } from './times.js';


export class NodeView {
  constructor() {
    this.strip = new Sections(byId('node-strip'));
    this.sections = new Sections(byId('node-sections'), ['Problems', 'Sides', 'Differences', 'Kubelet', 'Alerts', 'Load', 'Logs', 'Conditions']);
    this.node = null;
    this.takes = 0; // how many were taken
  }

  handle(type, data) {
    if (type !== 'node') return;
    if (this.node !== data) this.received = clockNow();
    this.node = data;
    this.takes++;
  }

  /** refresh asks for the node again, unless the watch is faster. */
  async refresh() {
    const { takes } = this;
    const node = await ask('apis/v1/node');
    if (node && this.takes === takes) this.handle('node', node);
  }

  // since is when the oldest unsent change was made. Its age is sent only with other news.
  get since() { return this.received - 1000 * this.node.delivery.oldestSeconds; }

  renderStrip(now) {
    const n = this.node;
    if (!n) return;
    setText(byId('node-name'), n.name);
    this.strip.put('Conditions', JSON.stringify([n.conditions, n.problems]), () => chips(n));
    this.strip.put('Resources', JSON.stringify([n.allocatable, n.requested, n.pods]), () => meters(n));
    if (isObserved(n)) this.strip.put('Findings', JSON.stringify([n.sides, n.drift, n.kubelet?.health, Boolean(n.alerts), n.firing]), () => strip(n));
    else this.strip.drop('Findings');
    this.strip.put('Delivery', JSON.stringify([n.uid, Boolean(n.sides), n.delivery, isUTC()]), () => deliveryLine(n, this.since, now));
  }

  // renderFindings shows what an audit, a guard and rules have found; a node without them shows none of it.
  renderFindings(n, now, put) {
    const optional = (title, there, key, make) => (there ? put(title, key, make) : this.sections.drop(title));
    optional('Sides', n.sides, n.sides, () => sides(n, now));
    optional('Differences', n.sides, n.differences ?? [], () => differences(n.differences, now, { named: true }));
    optional('Kubelet', n.kubelet, n.kubelet, () => kubelet(n.kubelet, now));
    optional('Logs', n.logs, n.logs, () => logs(n.logs, now));
    optional('Load', n.load, n.load, () => load(n.load));
    optional('Alerts', n.alerts, [n.alerts, n.firing], () => alerts(n.alerts, now, { named: true, more: (n.firing ?? 0) - n.alerts.filter((a) => !a.silenced).length }));
  }

  renderPage(now) {
    const n = this.node;
    if (!n) return;
    setText(byId('node-title'), n.name);
    const put = (title, key, make) => this.sections.put(title, JSON.stringify([key, isUTC()]), make);
    put('Problems', n.problems, () => problems(n.problems));
    this.renderFindings(n, now, put);
    put('Conditions', n.conditions, () => conditions(n, now));
    put('Resources', [n.capacity, n.allocatable, n.requested], () => resources(n));
    put('Delivery', [n.delivery, Boolean(n.sides)], () => deliveryFacts(n, this.since, now));
    put('Node', [n.version, n.runtime, n.addresses], () => identity(n));
    put('History', n.history, () => historyTable(n.history, now));
  }
}

// chips name what is wrong one by one, and count what is well.
function chips(n) {
  const shown = (n.conditions ?? []).filter((c) => c.type === 'Ready' || !healthy(c));
  const well = (n.conditions ?? []).filter((c) => !shown.includes(c));
  return el('ul', { class: 'chips' },
    shown.map((c) => el('li', { title: c.message ?? '' }, flag(healthy(c) ? 'good' : 'bad', `${c.type} ${c.status}`))),
    well.length > 0 ? el('li', { title: well.map((c) => `${c.type} ${c.status}`).join(', ') }, flag('good', `${well.length} other conditions healthy`)) : null,
    (n.problems ?? []).map((text) => el('li', {}, flag('bad', text))));
}

function problems(list) {
  if (!list?.length) return el('p', { class: 'quiet' }, 'None.');
  return el('ul', {}, list.map((text) => el('li', {}, flag('bad', text))));
}

// usage is what is requested of each resource; running pods count against the resource pods.
function usage(n) {
  const ended = (n.pods?.Succeeded ?? 0) + (n.pods?.Failed ?? 0) + (n.pods?.Rejected ?? 0) + (n.pods?.Evicted ?? 0);
  const running = Object.values(n.pods ?? {}).reduce((sum, count) => sum + count, 0) - ended;
  return Object.keys(n.allocatable ?? {}).map((name) => ({
    name, capacity: parse(n.capacity?.[name]), allocatable: parse(n.allocatable[name]),
    requested: name === 'pods' && n.requested?.pods === undefined ? running : parse(n.requested?.[name] ?? '0'),
  }));
}

function meters(n) {
  const shown = usage(n).filter((u) => ['cpu', 'memory', 'pods'].includes(u.name));
  return el('ul', { class: 'meters' }, shown.map((u) => el('li', {},
    el('span', { class: 'label' }, u.name), bar(u), el('span', {}, `${amount(u.name, u.requested)} of ${amount(u.name, u.allocatable)}`))));
}

function bar(u) {
  const full = u.allocatable > 0 ? u.requested / u.allocatable : 0;
  const fill = el('span', { class: 'fill', 'data-tone': full > 0.9 ? 'bad' : 'good' });
  fill.style.width = `${Math.min(100, 100 * full)}%`;
  return el('span', { class: 'meter', 'aria-hidden': 'true' }, fill);
}

function conditions(n, now) {
  return grid('Conditions of the node', ['Condition', 'Status', 'Reason', 'Since', 'Last report', 'Message'], (n.conditions ?? []).map((c) => [
    el('strong', {}, c.type), flag(healthy(c) ? 'good' : 'bad', c.status), c.reason ?? '', moment(c.lastTransitionTime, now), moment(c.lastHeartbeatTime, now), c.message ?? '',
  ]));
}

function resources(n) {
  return grid('Resources of the node', ['Resource', 'Requested', 'Allocatable', 'Capacity', 'In use'], usage(n).map((u) => [
    el('strong', {}, u.name), amount(u.name, u.requested), amount(u.name, u.allocatable), amount(u.name, u.capacity),
    el('span', { class: 'share' }, bar(u), u.allocatable > 0 ? `${Math.round((100 * u.requested) / u.allocatable)} %` : '–'),
  ]));
}

function deliveryLine({ uid, sides: observed, delivery: d }, since, now) {
  if (d.unreachableSince) {
    const text = (at) => `API server not reached for ${span(at - Date.parse(d.unreachableSince))}`;
    return el('p', {}, flag('bad', ticking(text, now)), d.lastError ? ` ${d.lastError}` : null);
  }
  if (d.pending > 0) {
    const text = (at) => `${d.pending} ${d.pending === 1 ? 'pod has' : 'pods have'} unsent changes, the oldest for ${lag(at - since)}`;
    return el('p', {}, flag(d.lastError ? 'bad' : 'busy', ticking(text, now)), d.lastError ? ` ${d.lastError}` : null);
  }
  if (observed) return el('p', {}, flag('done', 'the kubelet reports to the API server')); // whether it is up to date, the sides say
  return el('p', {}, uid ? flag('good', 'API server up to date') : flag('done', 'no API server')); // a node of a cluster has a UID
}

function deliveryFacts(n, since, now) {
  const d = n.delivery;
  return facts([
    ['State', deliveryLine(n, since, now)], ['Pods with unsent changes', n.sides ? null : String(d.pending)], ['Oldest unsent change', d.pending > 0 ? ticking((at) => lag(at - since), now) : null],
    ['Last error', d.lastError], ['Lease renewed', moment(d.leaseRenewed, now)], ['Not reached since', moment(d.unreachableSince, now)],
  ]);
}

function identity(n) {
  return facts([['Name', n.name], ['UID', n.uid], ['statusd', n.version], ['Runtime', n.runtime], ...(n.addresses ?? []).map((a) => [a.type, a.address])]);
}
