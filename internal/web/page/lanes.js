// The history of a pod as lanes of segments and marks: pure functions of records.

import { toneOf } from './alerts.js';

const conditionOrder = ['PodScheduled', 'PodReadyToStartContainers', 'Initialized', 'ContainersReady', 'Ready'];

/**
 * lanes returns [{label, kind, segments: [{start, end, text, tone, note}], marks: [{at, text, tone}]}], with times in
 * milliseconds. What still holds ends at end.
 */
export function lanes({ history = [], containerDetails = [], alertDetails = [], delivery: known }, end) {
  const records = history.map((r) => ({ ...r, at: Date.parse(r.observed) })).sort((a, b) => a.at - b.at || a.seq - b.seq);
  const of = (kind) => records.filter((r) => r.kind === kind);
  const names = [...new Set([...containerDetails.map((c) => c.name), ...records.map((r) => r.container).filter(Boolean)])];
  const result = [
    { label: 'phase', kind: 'Phase', segments: segments(of('Phase').map(phase), end), marks: podMarks(records) },
    { label: 'alerts', kind: 'Alert', segments: [], marks: alertMarks(alertDetails, end) },
    ...drift(of('Drift'), end),
    ...conditions(of('Condition'), end),
    ...names.flatMap((name) => container(name, records.filter((r) => r.container === name), end)),
    ...(known?.version === 0 ? [] : [delivery(records, end, !known || known.version > known.accepted)]), // a node on its own has no API server
  ];
  return result.filter((lane) => lane.segments.length + lane.marks.length > 0);
}

// segments joins what follows itself; a record without a value ends the one before it.
function segments(points, end) {
  const list = [];
  for (const point of points) {
    const last = list.at(-1);
    if (last && last.end === null) {
      if (last.text === point.text && last.note === point.note) continue;
      last.end = point.at;
    }
    if (point.text !== '') list.push({ start: point.at, end: null, text: point.text, tone: point.tone, note: point.note });
  }
  for (const segment of list) segment.end ??= Math.max(end, segment.start);
  return list;
}

const note = (r) => [r.reason, r.message].filter(Boolean).join(': ');

// drift has a lane for each way in which what the API said was not true.
function drift(records, end) {
  const lane = (r) => [r.subject, r.container].filter(Boolean).join(' ');
  return [...new Set(records.map(lane))].map((label) => ({
    label, kind: 'Drift', marks: [],
    segments: segments(records.filter((r) => lane(r) === label).map((r) => ({ at: r.at, text: r.to === 'drift' ? 'not true' : '', tone: 'bad', note: note(r) })), end),
  }));
}

const phaseTones = { Pending: 'busy', Running: 'good', Succeeded: 'done', Failed: 'bad' };
const phase = (r) => ({ at: r.at, text: r.to ?? '', tone: phaseTones[r.to] ?? 'bad', note: note(r) });

function conditions(records, end) {
  const types = [...new Set(records.map((r) => r.subject))];
  const rank = (type) => (conditionOrder.includes(type) ? conditionOrder.indexOf(type) : conditionOrder.length);
  types.sort((a, b) => rank(a) - rank(b));
  return types.map((type) => ({
    label: type, kind: 'Condition', marks: [],
    segments: segments(records.filter((r) => r.subject === type).map(condition), end),
  }));
}

const condition = (r) => ({ at: r.at, text: r.to ?? '', tone: r.to === 'True' ? 'good' : r.to === 'False' ? 'bad' : 'busy', note: note(r) });

// container is the lane of a container's states, and below it one for each kind of probe.
function container(name, records, end) {
  const states = segments(containerPoints(records), end);
  const marks = records.filter((r) => r.kind === 'Restart').map((r) => ({ at: r.at, text: `restart ${r.to}`, tone: 'bad', note: note(r) }))
    .concat(records.filter((r) => r.kind === 'Hook').map((r) => ({ at: r.at, text: `${r.subject ?? 'hook'} ${r.to}`, tone: 'busy', note: note(r) })));
  const kinds = [...new Set(records.filter((r) => r.kind === 'Probe').map((r) => r.subject))];
  return [
    { label: name, kind: 'Container', segments: states, marks },
    ...kinds.map((kind) => ({
      label: `${kind} probe`, kind: 'Probe', marks: [], segments: segments(probePoints(records, kind), end),
    })),
  ];
}

// containerPoints follows both the state of a container and whether it is ready.
function containerPoints(records) {
  let state = null;
  let ready = false;
  const points = [];
  for (const r of records) {
    if (r.kind === 'Container') state = r;
    else if (r.kind === 'Ready') ready = r.to === 'ready';
    else continue;
    if (state !== null) points.push({ at: r.at, ...containerLook(state, ready) });
  }
  return points;
}

function containerLook(state, ready) {
  const because = note(state);
  switch (state.to ?? '') {
    case 'running': return { text: ready ? 'running, ready' : 'running, not ready', tone: ready ? 'good' : 'busy', note: because };
    case 'waiting': return { text: state.reason || 'waiting', tone: /^(PodInitializing|ContainerCreating|)$/.test(state.reason ?? '') ? 'busy' : 'bad', note: because };
    case 'terminated': return { text: state.reason || 'terminated', tone: state.reason === 'Completed' ? 'done' : 'bad', note: because };
    default: return { text: state.to ?? '', tone: 'busy', note: because };
  }
}

// probePoints are the verdicts of one kind of probe. They are about one run of the container, and end with it.
function probePoints(records, kind) {
  const points = [];
  for (const r of records) {
    if (r.kind === 'Probe' && r.subject === kind) points.push(verdict(r));
    else if (r.kind === 'Container' && r.to !== 'running') points.push({ at: r.at, text: '' });
  }
  return points;
}

// What a probe that passes has answered is no news.
const verdict = (r) => (r.to === 'passed' ? { at: r.at, text: r.to, tone: 'good', note: '' } : { at: r.at, text: r.to, tone: 'bad', note: note(r) });

// alertMarks are when each alert of the pod began, fired and was resolved.
function alertMarks(list, end) {
  return list.flatMap((a) => [['pending', a.since, 'busy'], ['firing', a.firing, toneOf({ ...a, state: 'firing' })], ['resolved', a.resolved, 'done']]
    .filter(([, at]) => at && Date.parse(at) <= end)
    .map(([state, at, tone]) => ({ at: Date.parse(at), text: `${a.rule} ${state}`, tone, note: a.annotations?.summary ?? '' })));
}

function podMarks(records) {
  return records.filter((r) => ['Admission', 'Deletion', 'Action'].includes(r.kind) || (r.kind === 'Hook' && !r.container))
    .map((r) => ({ at: r.at, text: `${r.kind === 'Action' ? r.subject : r.kind.toLowerCase()} ${r.to}`, tone: r.kind === 'Admission' && r.to === 'admitted' ? 'done' : 'busy', note: note(r) }));
}

// delivery is when the API server did not know what the node knew. What was not reported to it,
// such as the verdict of a probe, has no part in this.
const reported = new Set(['Phase', 'Condition', 'Container', 'Restart', 'Ready']);

function delivery(records, end, pending) {
  const behind = [];
  for (const { at, until } of acceptances(records.filter((r) => reported.has(r.kind)), end, pending)) {
    const last = behind.at(-1);
    if (last && at <= last.end) last.end = Math.max(last.end, until);
    else behind.push({ start: at, end: until, note: '' });
  }
  for (const segment of behind) {
    const open = pending && segment.end >= end;
    Object.assign(segment, open ? { text: 'not accepted yet', tone: 'bad' } : { text: 'behind', tone: 'busy' });
  }
  const verdicts = records.filter((r) => r.kind === 'Delivery').map((r) => ({ at: r.at, text: `delivery ${r.to}`, tone: r.to === 'delivered' ? 'good' : 'bad', note: note(r) }));
  return { label: 'API server behind', kind: 'Delivery', segments: behind, marks: verdicts };
}

// acceptances are when each record was accepted: a status has everything that came before it, so the API server knows a
// record at the latest with the next one that it accepted. What is left is pending, or was settled without a write.
function acceptances(records, end, pending) {
  const result = [];
  let later = pending ? end : null;
  for (const r of [...records].reverse()) {
    if (r.accepted) later = Math.min(later ?? Infinity, Date.parse(r.accepted));
    result.unshift({ at: r.at, until: Math.max(later ?? r.at, r.at) });
  }
  return result;
}

const minute = 60_000;
export const ranges = [
  { label: '5 min', length: 5 * minute }, { label: '1 h', length: 60 * minute }, { label: '1 d', length: 1440 * minute }, { label: 'all', length: Infinity },
];

/** rangeFor is the shortest range in which the last change is not at the edge. */
export function rangeFor(history, end) {
  if (history.length === 0) return ranges.at(-1);
  const last = Math.max(...history.map((r) => Date.parse(r.observed)));
  return ranges.find((range) => 3 * (end - last) <= range.length);
}

const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800].map((s) => s * 1000);

/** ticks are round instants between two, at most so many. zoneOffset (ms) makes days begin at midnight of the reader. */
export function ticks(start, end, most, zoneOffset = 0) {
  const step = steps.find((s) => (end - start) / s <= most) ?? steps.at(-1);
  const list = [];
  for (let at = Math.ceil((start + zoneOffset) / step) * step - zoneOffset; at <= end; at += step) list.push(at);
  return list;
}
