// The node: a strip above the table of pods, and a page with everything.

import { byId, el, setText } from './dom.js';
import { flag } from './containers.js';
import { facts, grid } from './grid.js';
import { historyTable } from './historytable.js';
import { moment } from './moments.js';
import { amount, parse } from './quantity.js';
import { Sections } from './sections.js';
import { age, isUTC, lag } from './times.js';

// Ready is good when it is True; the others are pressures and problems, which are good when they are not.
const healthy = (c) => (c.type === 'Ready' ? c.status === 'True' : c.status === 'False');

export class NodeView {
  constructor() {
    this.strip = new Sections(byId('node-strip'));
    this.sections = new Sections(byId('node-sections'));
    this.node = null;
  }

  handle(type, data) {
    if (type === 'node') this.node = data;
  }

  renderStrip(now) {
    const n = this.node;
    if (!n) return;
    setText(byId('node-name'), n.name);
    this.strip.put('Conditions', JSON.stringify([n.conditions, n.problems]), () => chips(n));
    this.strip.put('Resources', JSON.stringify([n.allocatable, n.requested, n.pods]), () => meters(n));
    this.strip.put('Delivery', JSON.stringify([n.delivery, isUTC(), Math.floor(now / 1000)]), () => deliveryLine(n.delivery, now));
  }

  renderPage(now) {
    const n = this.node;
    if (!n) return;
    setText(byId('node-title'), n.name);
    const put = (title, key, make) => this.sections.put(title, JSON.stringify([key, isUTC()]), make);
    put('Problems', n.problems, () => problems(n.problems));
    put('Conditions', [n.conditions, Math.floor(now / 1000)], () => conditions(n, now));
    put('Resources', [n.capacity, n.allocatable, n.requested], () => resources(n));
    put('Delivery', [n.delivery, Math.floor(now / 1000)], () => deliveryFacts(n.delivery, now));
    put('Node', [n.version, n.runtime, n.addresses], () => identity(n));
    put('History', n.history, () => historyTable(n.history, now));
  }
}

function chips(n) {
  return el('ul', { class: 'chips' },
    (n.conditions ?? []).map((c) => el('li', { title: c.message ?? '' }, flag(healthy(c) ? 'good' : 'bad', `${c.type} ${c.status}`))),
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

function deliveryLine(d, now) {
  if (d.unreachableSince) {
    return el('p', {}, flag('bad', `API server not reached for ${age(now - Date.parse(d.unreachableSince))}`), d.lastError ? ` ${d.lastError}` : null);
  }
  if (d.pending > 0) {
    return el('p', {}, flag(d.lastError ? 'bad' : 'busy', `${d.pending} ${d.pending === 1 ? 'pod has' : 'pods have'} unsent changes, the oldest for ${lag(1000 * d.oldestSeconds)}`), d.lastError ? ` ${d.lastError}` : null);
  }
  return el('p', {}, flag('good', 'API server up to date'));
}

function deliveryFacts(d, now) {
  return facts([
    ['State', deliveryLine(d, now)], ['Pods with unsent changes', String(d.pending)], ['Oldest unsent change', d.pending > 0 ? lag(1000 * d.oldestSeconds) : null],
    ['Last error', d.lastError], ['Lease renewed', moment(d.leaseRenewed, now)], ['Not reached since', moment(d.unreachableSince, now)],
  ]);
}

function identity(n) {
  return facts([['Name', n.name], ['UID', n.uid], ['statusd', n.version], ['Runtime', n.runtime], ...(n.addresses ?? []).map((a) => [a.type, a.address])]);
}
