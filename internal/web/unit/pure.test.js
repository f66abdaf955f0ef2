import assert from 'node:assert/strict';
import { test } from 'node:test';

import { coalesced } from '../page/ask.js';
import { lanes, rangeFor, ticks } from '../page/lanes.js';
import { victim } from '../page/logs.js';
import { percent, strain } from '../page/load.js';
import { parse as quantity, bytes } from '../page/quantity.js';
import { parse as route, podHref, podsHref } from '../page/route.js';
import { comparator, matches, place, shortWhy } from '../page/select.js';
import { sentence, until } from '../page/sentence.js';
import { folded, reached, texts, toneOf } from '../page/alerts.js';
import { arranged, containerNames, sidesOf, silent, stateText } from '../page/sides.js';
import { age, clock, full, lag, offset, span, useUTC } from '../page/times.js';
import { healthy } from '../page/states.js';
import { restless, reworded } from '../page/wording.js';

useUTC(true);

test('ages are those of kubectl', () => {
  const second = 1000, minute = 60 * second, hour = 60 * minute, day = 24 * hour;
  const cases = [
    [-5, '0s'], [119 * second, '119s'], [2 * minute, '2m'], [9 * minute + 59 * second, '9m59s'], [179 * minute, '179m'], [3 * hour, '3h'],
    [7 * hour + 59 * minute, '7h59m'], [47 * hour, '47h'], [2 * day + hour, '2d1h'], [100 * day, '100d'], [800 * day, '2y70d'],
  ];
  for (const [milliseconds, want] of cases) assert.equal(age(milliseconds), want);
  assert.equal(lag(42.4), '42ms');
  assert.equal(lag(1234), '1.2s');
});

test('times have a date if it is not today, and a zone', () => {
  const now = Date.parse('2026-03-02T10:00:00Z');
  assert.equal(clock('2026-03-02T09:08:07Z', now), '09:08:07');
  assert.equal(clock('2026-03-01T09:08:07Z', now), '2026-03-01 09:08:07');
  assert.equal(full('2026-03-01T09:08:07.5Z'), '2026-03-01 09:08:07 Z');
  assert.equal(offset(-210), '-03:30');
});

test('quantities', () => {
  for (const [text, want] of [['250m', 0.25], ['1.5Gi', 1.5 * 2 ** 30], ['2e3', 2000], ['110', 110], ['5k', 5000]]) assert.equal(quantity(text), want);
  assert.ok(Number.isNaN(quantity('many')));
  assert.equal(bytes(30 * 2 ** 30), '30 GiB');
  assert.equal(bytes(1536), '1.5 KiB');
});

test('addresses name what they were made of', () => {
  const names = ['web-0', 'a/b', 'ü?#%', '..'];
  for (const name of names) {
    const { view, namespace, name: found } = route(podHref({ namespace: 'n s', name }));
    assert.deepEqual([view, namespace, found], ['pod', 'n s', name]);
  }
  const filter = { text: 'a&b=c #', state: 'NotReady', namespace: 'x' };
  const sort = { column: 'age', reverse: true };
  assert.deepEqual(route(podsHref(filter, sort)), { view: 'pods', filter, sort });
  assert.equal(podsHref({ text: '', state: '', namespace: '' }, { column: 'state', reverse: false }), '#/');
  assert.equal(route('#/pods/%zz/x').namespace, '%zz');
  assert.equal(route('').view, 'pods');
});

const pod = (name, more = {}) => ({ namespace: 'n', name, uid: name, state: 'Ready', status: 'Running', why: `Pod n/${name} is Ready.`, ready: 1, containers: 1, restarts: 0, created: '2026-01-01T00:00:00Z', delivery: { version: 1, accepted: 1 }, ...more });

test('an order is total, and a search finds each word', () => {
  const list = [pod('b', { restarts: 2 }), pod('a'), pod('c', { state: 'Failed' }), pod('d', { state: 'SomethingNew' })];
  const names = (by) => [...list].sort(comparator(by)).map((p) => p.name).join('');
  assert.equal(names({ column: 'state', reverse: false }), 'dcab');
  assert.equal(names({ column: 'pod', reverse: true }), 'dcba');
  assert.equal(names({ column: 'restarts', reverse: false }), 'bacd');
  const sorted = [1, 3, 5];
  assert.deepEqual([0, 3, 4, 9].map((n) => place(sorted, n, (a, b) => a - b)), [0, 1, 2, 3]);
  assert.ok(matches(pod('Web'), { text: 'RUNNING web' }));
  assert.ok(!matches(pod('web'), { text: 'web crash' }));
  assert.ok(!matches(pod('web'), { state: 'Failed' }));
});

test('a row says what follows because', () => {
  assert.equal(shortWhy(pod('a', { why: 'Pod n/a is not Ready since 10:00:00, because it sleeps. Next: it wakes.' })), 'It sleeps. Next: it wakes.');
  assert.equal(shortWhy(pod('a')), '');
  assert.equal(shortWhy(pod('a', { why: 'Pod n/a is Ready. Note: restarted once.' })), 'Note: restarted once.');
});

test('a row says first what is not true', () => {
  const why = 'What the API says of pod n/a is not true since 10:00:00: it has ended. Reported: Pod n/a is not Ready, because it sleeps.';
  assert.equal(shortWhy(pod('a', { why, brief: 'it sleeps' })), 'Not true since 10:00:00: it has ended. Reported: Pod n/a is not Ready, because it sleeps.');
});

test('the sentence says the whole chain', () => {
  const e = { state: 'NotReady', since: '2026-01-01T10:32:05Z', causes: [{ text: 'a', causes: [{ text: 'b' }] }, { text: 'c' }] };
  assert.equal(sentence(e, Date.parse('2026-01-01T11:00:00Z')), 'Not Ready since 10:32:05, for 2 reasons.');
  assert.equal(sentence({ state: 'Failed', since: '2026-01-01T10:32:05Z' }, Date.parse('2026-01-01T11:00:00Z')), 'Failed at 10:32:05.');
  const now = Date.parse('2026-01-01T10:00:00Z');
  assert.equal(until('2026-01-01T10:00:38Z', now, age), 'in 38s (10:00:38)');
  assert.equal(until('2026-01-01T09:00:38Z', now, age), 'at any moment');
});

const at = (seconds) => new Date(Date.UTC(2026, 0, 1) + 1000 * seconds).toISOString();

test('lanes follow the records, in whatever order they come', () => {
  const history = [
    { seq: 3, observed: at(5), kind: 'Container', container: 'c', to: 'running', accepted: at(6) },
    { seq: 1, observed: at(0), kind: 'Condition', subject: 'Ready', to: 'False', reason: 'R', accepted: at(1) },
    { seq: 2, observed: at(0), kind: 'Container', container: 'c', to: 'waiting', reason: 'ContainerCreating', accepted: at(1) },
    { seq: 4, observed: at(7), kind: 'Ready', container: 'c', to: 'ready' },
    { seq: 5, observed: at(7), kind: 'Condition', subject: 'Ready', to: 'True' },
    { seq: 6, observed: at(8), kind: 'Condition', subject: 'x/gate', to: 'True', accepted: at(8) },
    { seq: 7, observed: at(9), kind: 'Condition', subject: 'x/gate', from: 'True', to: '', accepted: at(9) },
  ];
  const end = Date.parse(at(20));
  const found = lanes({ history, containerDetails: [{ name: 'c' }] }, end);
  const texts = (label) => found.find((l) => l.label === label).segments.map((s) => `${s.text} ${(s.start - Date.parse(at(0))) / 1000}-${(s.end - Date.parse(at(0))) / 1000}`);
  assert.deepEqual(found.map((l) => l.label), ['Ready', 'x/gate', 'c', 'API server behind']);
  assert.deepEqual(texts('Ready'), ['False 0-7', 'True 7-20']);
  assert.deepEqual(texts('x/gate'), ['True 8-9']);
  assert.deepEqual(texts('c'), ['ContainerCreating 0-5', 'running, not ready 5-7', 'running, ready 7-20']);
  assert.deepEqual(texts('API server behind'), ['behind 0-1', 'behind 5-6', 'behind 7-8', 'behind 9-9']);
});

test('alerts are marks on the timeline', () => {
  const history = [{ seq: 1, observed: at(0), kind: 'Phase', to: 'Running' }];
  const alertDetails = [
    { rule: 'Crashing', state: 'firing', severity: 'critical', since: at(1), firing: at(3) },
    { rule: 'Slow', state: 'resolved', severity: 'info', since: at(2), firing: at(4), resolved: at(5) },
    { rule: 'Later', state: 'pending', since: at(30) }, // by a clock that is ahead
  ];
  const lane = lanes({ history, alertDetails, delivery: { version: 0 } }, Date.parse(at(20))).find((l) => l.label === 'alerts');
  assert.deepEqual(lane.marks.map((m) => `${m.text} ${(m.at - Date.parse(at(0))) / 1000} ${m.tone}`),
    ['Crashing pending 1 busy', 'Crashing firing 3 bad', 'Slow pending 2 busy', 'Slow firing 4 done', 'Slow resolved 5 done']);
});

test('the verdict of a probe ends with the run of its container', () => {
  const history = [
    { seq: 1, observed: at(0), kind: 'Container', container: 'c', to: 'running' },
    { seq: 2, observed: at(1), kind: 'Probe', subject: 'readiness', container: 'c', to: 'passed', message: 'one' },
    { seq: 3, observed: at(2), kind: 'Probe', subject: 'readiness', container: 'c', to: 'passed', message: 'two' },
    { seq: 4, observed: at(5), kind: 'Container', container: 'c', to: 'terminated', reason: 'Error' },
    { seq: 5, observed: at(6), kind: 'Container', container: 'c', to: 'running' },
    { seq: 6, observed: at(8), kind: 'Probe', subject: 'readiness', container: 'c', to: 'failed', message: 'refused' },
  ];
  const lane = lanes({ history, delivery: { version: 0 } }, Date.parse(at(10))).find((l) => l.label === 'readiness probe');
  assert.deepEqual(lane.segments.map((s) => `${s.text} ${(s.start - Date.parse(at(0))) / 1000}-${(s.end - Date.parse(at(0))) / 1000} ${s.note}`), ['passed 1-5 ', 'failed 8-10 refused']);
});

test('a record without an acceptance is known with a later one, or settled', () => {
  const phase = (seconds, accepted) => ({ seq: seconds, observed: at(seconds), kind: 'Phase', to: `p${seconds}`, accepted });
  const behind = (history, delivery) => lanes({ history, delivery }, Date.parse(at(20))).find((l) => l.label === 'API server behind')?.segments
    .map((s) => `${s.text} ${(s.start - Date.parse(at(0))) / 1000}-${(s.end - Date.parse(at(0))) / 1000}`);
  assert.deepEqual(behind([phase(1), phase(2, at(3)), phase(10)], { version: 3, accepted: 3 }), ['behind 1-3', 'behind 10-10']);
  assert.deepEqual(behind([phase(1), phase(2, at(3)), phase(10)], { version: 4, accepted: 3 }), ['behind 1-3', 'not accepted yet 10-20']);
});

test('a node without an API server is not behind', () => {
  const history = [{ seq: 1, observed: at(0), kind: 'Phase', to: 'Running' }];
  assert.deepEqual(lanes({ history, delivery: { version: 0, accepted: 0 } }, Date.parse(at(5))).map((l) => l.label), ['phase']);
});

test('ticks are round and few', () => {
  const start = Date.parse(at(3));
  assert.deepEqual(ticks(start, Date.parse(at(63)), 6).map((t) => (t - Date.parse(at(0))) / 1000), [10, 20, 30, 40, 50, 60]);
  assert.equal(rangeFor([{ observed: at(-9999) }, { observed: at(0) }], Date.parse(at(30))).label, '5 min');
  assert.equal(rangeFor([{ observed: at(0) }], Date.parse(at(300))).label, '1 h');
  assert.equal(rangeFor([], 0).label, 'all');
});

test('wording is taken only if nothing else differs', () => {
  const known = new Map([['n/a', pod('a', { state: 'NotReady', why: 'old' })], ['n/b', pod('b', { state: 'NotReady', why: 'old' })]]);
  const items = [pod('a', { state: 'NotReady', why: 'new', delivery: { version: 1, accepted: 1, lagSeconds: 9 } }), pod('b', { state: 'NotReady', why: 'new', restarts: 1 }), pod('c')];
  assert.deepEqual(reworded(items, known).map((p) => p.name), ['a']);
  assert.deepEqual(restless([pod('a'), pod('b', { state: 'Failed' }), pod('c', { state: 'Failed' })]), ['Failed']);
});

test('calls during a run are one more run', async () => {
  const ends = [];
  const run = coalesced(() => new Promise((resolve) => ends.push(resolve)));
  const first = run();
  run();
  run();
  ends[0]();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(ends.length, 2);
  ends[1]();
  await first;
  assert.equal(ends.length, 2);
});

test('sides are shown from what runs to what is reported, and those that do not answer are named', () => {
  const sides = { api: { at: at(0) }, machine: { at: at(0), error: 'no such directory' }, strange: {}, runtime: { at: at(0) } };
  assert.deepEqual(sidesOf(sides).map(([side]) => side), ['runtime', 'api', 'machine', 'strange']);
  assert.deepEqual(silent(sides), ['Machine', 'strange']);
  assert.deepEqual(silent(undefined), []);
  const pictures = arranged([{ side: 'api', containers: [{ name: 'b' }] }, { side: 'runtime', containers: [{ name: 'a' }, { name: 'b' }] }, { side: 'machine' }]);
  assert.deepEqual(pictures.map((p) => p.side), ['runtime', 'api', 'machine']);
  assert.deepEqual(containerNames(pictures), ['a', 'b']);
});

test('what a side says of a container', () => {
  assert.equal(stateText({ state: 'running', ready: true }), 'running, ready');
  assert.equal(stateText({ state: 'terminated', reason: 'Error', exitCode: 0 }), 'terminated Error (exit code 0)');
  assert.equal(stateText({ state: 'waiting', reason: 'CrashLoopBackOff', ready: false }), 'waiting CrashLoopBackOff, not ready');
});

test('an alert says when it came into its state, and each text once', () => {
  assert.equal(reached({ state: 'pending', since: 'a', firing: 'b' }), 'a');
  assert.equal(reached({ state: 'firing', since: 'a', firing: 'b' }), 'b');
  assert.equal(reached({ state: 'resolved', since: 'a', firing: 'b', resolved: 'c' }), 'c');
  assert.deepEqual(texts({ annotations: { description: 'long' } }), ['long']);
  assert.deepEqual(texts({ annotations: { summary: 'short', description: 'long', action: 'act', runbook: 'read' } }), ['short', 'long', 'To do: act', 'read']);
  assert.deepEqual(texts({}), ['']);
});

test('pods that are not true come before those that are well, and a search finds them', () => {
  const list = [pod('a'), pod('b', { drift: 1 }), pod('c', { state: 'Failed', drift: 1 }), pod('d', { state: 'Starting' }), pod('e', { state: 'NotReady' })];
  assert.equal(list.sort(comparator({ column: 'state' })).map((p) => p.name).join(''), 'cebda');
  assert.ok(matches(pod('a', { drift: 1 }), { text: 'drift' }));
  assert.ok(!matches(pod('a', { drift: 0 }), { text: 'drift' }));
  assert.ok(matches(pod('a', { alerts: 2 }), { text: 'alert' }));
});

test('a share of a resource', () => {
  assert.equal(percent(0.954), '95 %');
  assert.deepEqual([0, 0.76, 0.95].map(strain), ['good', 'busy', 'bad']);
});

test('a process that was hit is named', () => {
  assert.equal(victim({ process: 'java', pid: '17', uid: 'u1' }), 'java, pid 17, pod u1');
  assert.equal(victim(undefined), '');
});

test('a lane shows when what the API said was not true', () => {
  const history = [
    { seq: 1, observed: at(0), kind: 'Phase', to: 'Running' },
    { seq: 2, observed: at(5), kind: 'Drift', subject: 'RunningWithoutContainer', container: 'c', from: 'difference', to: 'drift', message: 'it has ended' },
    { seq: 3, observed: at(7), kind: 'Action', subject: 'restart-kubelet', to: 'done', reason: 'Drift' },
    { seq: 4, observed: at(9), kind: 'Drift', subject: 'RunningWithoutContainer', container: 'c', from: 'drift', to: 'resolved' },
    { seq: 5, observed: at(12), kind: 'Drift', subject: 'LeaseStale', from: 'difference', to: 'drift' },
  ];
  const found = lanes({ history, delivery: { version: 0 } }, Date.parse(at(20)));
  const segments = (lane) => lane.segments.map((s) => `${s.text} ${(s.start - Date.parse(at(0))) / 1000}-${(s.end - Date.parse(at(0))) / 1000}`);
  assert.deepEqual(found.map((l) => [l.label, ...segments(l)].join(': ')), ['phase: Running 0-20', 'RunningWithoutContainer c: not true 5-9', 'LeaseStale: not true 12-20']);
  assert.deepEqual(found[0].marks.map((m) => m.text), ['restart-kubelet done']);
});

test('a condition that is good when True is not a problem', () => {
  assert.equal(healthy({ type: 'KubeletHealthy', status: 'True' }), true);
  assert.equal(healthy({ type: 'KubeletHealthy', status: 'False' }), false);
  assert.equal(healthy({ type: 'Ready', status: 'True' }), true);
  assert.equal(healthy({ type: 'MemoryPressure', status: 'False' }), true);
  assert.equal(healthy({ type: 'MemoryPressure', status: 'True' }), false);
});

test('a row leads with the deepest cause', () => {
  const why = 'Pod d/p is not Ready, because container "app" is not ready: exit code 1: no such table · 15 restarts.';
  assert.equal(shortWhy({ namespace: 'd', name: 'p', why, brief: 'exit code 1: no such table · 15 restarts' }), 'Exit code 1: no such table · 15 restarts');
});

test('durations in sentences are those of the server', () => {
  const cases = [[0, '0 s'], [38000, '38 s'], [125000, '2 min 5 s'], [120000, '2 min'], [10920000, '3 h 2 min'], [345600000, '4 d'], [349200000, '4 d 1 h']];
  for (const [milliseconds, want] of cases) assert.equal(span(milliseconds), want);
});

test('alerts are folded by rule, and info is not red', () => {
  const storm = (pod) => ({ rule: 'PodRestartStorm', severity: 'critical', state: 'firing', pod });
  const groups = folded([storm('a'), storm('b'), { rule: 'Note', severity: 'info', state: 'firing' }, { ...storm('c'), state: 'resolved' }]);
  assert.deepEqual(groups.map((g) => [g[0].rule, g[0].state, g.length]), [['PodRestartStorm', 'firing', 2], ['Note', 'firing', 1], ['PodRestartStorm', 'resolved', 1]]);
  assert.deepEqual(groups.map((g) => toneOf(g[0])), ['bad', 'done', 'done']);
});

test('what follows from a cause is said behind it', () => {
  const causes = [{ text: 'container "db" is not ready', causes: [{ text: '4 restarts', behind: true, causes: [{ text: 'exit code 3' }] }] }];
  assert.equal(sentence({ state: 'NotReady', causes }, 0), 'Not Ready, because container "db" is not ready: exit code 3 · 4 restarts.');
});
