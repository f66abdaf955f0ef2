import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Parser } from '../page/sse.js';
import { silence, Stream } from '../page/stream.js';

test('events are found whatever the pieces of the stream are', () => {
  const text = ': heartbeat\n\nid: 1-7\nevent: pod\ndata: {"a":\ndata: 1}\n\nevent: synced\n\n';
  for (let size = 1; size <= text.length; size++) {
    const parser = new Parser();
    const events = [];
    for (let at = 0; at < text.length; at += size) events.push(...parser.feed(text.slice(at, at + size)));
    assert.deepEqual(events, [{ type: 'pod', id: '1-7', data: '{"a":\n1}' }, { type: 'synced', id: null, data: '' }]);
  }
});

// clock replaces the timers of the process with some that a test moves.
function clock(t) {
  const { setTimeout, clearTimeout } = globalThis;
  t.after(() => Object.assign(globalThis, { setTimeout, clearTimeout }));
  let now = 0;
  let last = 0;
  const due = new Map();
  globalThis.setTimeout = (call, wait) => { due.set(++last, { at: now + wait, call }); return last; };
  globalThis.clearTimeout = (id) => due.delete(id);
  return {
    now: () => now,
    tick(by) {
      now += by;
      for (const [id, { at, call }] of [...due]) if (at <= now && due.delete(id)) call();
    },
  };
}

// connections are answered by hand: each fetch is kept with what its stream can be fed.
function harness(time) {
  const requests = [];
  const states = [];
  const fetch = (url, { signal }) => new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
    requests.push({
      url,
      fail: () => reject(new TypeError('Failed to fetch')),
      answer(status, body) {
        const stream = new ReadableStream({ start: (controller) => { this.controller = controller; } });
        signal.addEventListener('abort', () => { try { this.controller.error(signal.reason); } catch { /* closed */ } });
        resolve(new Response(body ?? stream, { status }));
      },
      send(text) { this.controller.enqueue(new TextEncoder().encode(text)); },
      end() { this.controller.close(); },
    });
  });
  const events = [];
  const stream = new Stream('/watch', { fetch, clock: time.now, onEvent: (type) => events.push(type), onState: (state) => states.push(state) });
  return { stream, requests, states, events };
}

const settle = async () => { for (let i = 0; i < 20; i++) await Promise.resolve(); await new Promise((r) => setImmediate(r)); };

test('a connection that is silent counts as lost, and is resumed', async (t) => {
  const time = clock(t);
  const { stream, requests, states, events } = harness(time);
  stream.open();
  requests[0].answer(200);
  await settle();
  requests[0].send('event: reset\ndata: {}\n\n');
  await settle();
  assert.equal(states.at(-1).name, 'connecting', 'a list that has only begun is not live');
  requests[0].send('id: 1-3\nevent: synced\ndata: {}\n\n');
  await settle();
  assert.equal(states.at(-1).name, 'live');
  time.tick(silence - 1);
  requests[0].send(': heartbeat\n\n');
  await settle();
  const heard = time.now();
  time.tick(silence - 1);
  await settle();
  assert.equal(states.at(-1).name, 'live', 'a heartbeat keeps it alive');
  time.tick(1);
  await settle();
  assert.deepEqual({ name: states.at(-1).name, since: states.at(-1).since }, { name: 'lost', since: heard });
  time.tick(100);
  await settle();
  assert.equal(requests[1].url, '/watch?since=1-3');
  requests[1].answer(200);
  await settle();
  requests[1].send('event: synced\ndata: {}\n\n');
  await settle();
  assert.equal(states.at(-1).name, 'live');
  assert.deepEqual(events, ['reset', 'synced', 'synced']);
  stream.close();
});

test('errors of the server are tried again, refusals are told', async (t) => {
  const time = clock(t);
  const { stream, requests, states } = harness(time);
  stream.open();
  requests[0].fail();
  await settle();
  assert.deepEqual([states.at(-1).name, states.at(-1).error], ['connecting', 'Failed to fetch']);
  time.tick(100);
  requests[1].answer(503, JSON.stringify({ message: 'not now' }));
  await settle();
  assert.deepEqual([states.at(-1).name, states.at(-1).error], ['connecting', 'not now']);
  time.tick(250);
  requests[2].answer(404, JSON.stringify({ message: 'no such pod' }));
  await settle();
  assert.deepEqual([states.at(-1).name, states.at(-1).status], ['refused', 404]);
  stream.close();
  time.tick(60_000);
  assert.equal(requests.length, 3, 'a closed stream does not try');
});

test('a stream that is closed on purpose reports nothing', async (t) => {
  const time = clock(t);
  const { stream, requests, states } = harness(time);
  stream.open();
  requests[0].answer(200);
  await settle();
  stream.close();
  await settle();
  assert.deepEqual(states.map((s) => s.name), ['connecting']);
});
