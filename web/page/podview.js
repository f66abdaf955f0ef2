// The page of one pod.

import { byId, el, setAttribute, setText } from './dom.js';
import { containers, probes } from './containers.js';
import { delivery } from './delivery.js';
import { explanation } from './explanation.js';
import { historyTable } from './historytable.js';
import { keyOf } from './pods.js';
import { Sections } from './sections.js';
import { sign, tone, word } from './states.js';
import { Timeline } from './timeline.js';
import { age, isUTC } from './times.js';
import { toYAML } from './yaml.js';

export class PodView {
  constructor() {
    this.element = byId('pod-view');
    this.title = byId('pod-title');
    this.badge = byId('pod-badge');
    this.line = byId('pod-line');
    this.missing = byId('pod-missing');
    this.sections = new Sections(byId('pod-sections'));
    this.timeline = new Timeline();
    this.yaml = yamlPanel();
    this.detail = null;
  }

  get watch() { return `/apis/v1/watch?pod=${encodeURIComponent(this.key)}`; }

  /** show begins with a pod; what was shown of another one goes at once. */
  show({ namespace, name }) {
    const key = `${namespace}/${name}`;
    if (key !== this.key) {
      this.key = key;
      this.detail = null;
      this.sections.clear();
      this.timeline = new Timeline();
      this.yaml = yamlPanel();
    }
    setText(this.title, key);
    this.missing.hidden = true;
    this.badge.hidden = this.detail === null;
    setText(this.line, this.detail ? this.line.textContent : '');
  }

  handle(type, data) {
    if (type === 'detail' && keyOf(data) === this.key) this.detail = data;
  }

  /** refused shows that the server does not know the pod. */
  refused({ status, error }) {
    this.missing.hidden = false;
    const text = status === 404
      ? `statusd does not know pod ${this.key}. A pod is remembered for an hour after it is gone.`
      : `statusd refuses to show pod ${this.key}: ${error}`;
    setText(this.missing, text);
  }

  render(now) {
    const d = this.detail;
    if (!d) return;
    this.missing.hidden = true;
    this.badge.hidden = false;
    const mood = tone(d.state);
    setText(this.badge, `${sign(mood)} ${word(d.state)}`);
    setAttribute(this.badge, 'data-tone', mood);
    this.tick(now);
    const zone = isUTC();
    this.#section('Timeline', [d.history, d.gone, zone], () => { this.timeline.update(d, now); return this.timeline.element; });
    this.#section('Containers', [d.containerDetails, zone, second(now)], () => containers(d, now));
    this.#section('Probes', [d.containerDetails, zone, second(now)], () => probes(d, now));
    this.#section('Delivery', [d.delivery, zone, second(now)], () => delivery(d, now));
    this.#section('History', [d.history, zone], () => historyTable(d.history, now));
    this.#section('YAML', [d.pod], () => this.yaml.show(d.pod));
  }

  #section(title, key, make) {
    this.sections.put(title, JSON.stringify(key), make);
  }

  /** tick shows what changes with time alone: ages and countdowns, and the end of the timeline. */
  tick(now) {
    const d = this.detail;
    if (!d) return;
    this.#section('Why', [d.explanation, isUTC(), second(now)], () => explanation(d, now));
    setText(this.line, summary(d, now));
    if (this.sections.has('Timeline')) this.timeline.layout(now);
  }
}

const second = (now) => Math.floor(now / 1000);

function summary(d, now) {
  const parts = [
    d.status, `${d.ready}/${d.containers} ready`, d.restarts === 1 ? '1 restart' : `${d.restarts} restarts`,
    d.created ? `age ${age((d.gone ? Date.parse(d.gone) : now) - Date.parse(d.created))}` : '',
    d.gone ? `gone for ${age(now - Date.parse(d.gone))}` : '', d.ip ?? '', d.static ? 'static' : '', `UID ${d.uid}`,
  ];
  return parts.filter(Boolean).join(' · ');
}

// yamlPanel stays closed or open as the reader left it, and writes the text only while it is open.
function yamlPanel() {
  const text = el('pre', { class: 'yaml', tabindex: '0', 'aria-label': 'The pod as YAML' });
  let pod = null;
  const panel = el('details', { toggle: () => write() }, el('summary', {}, 'Show the pod as the node reports it'), text);
  const write = () => { if (panel.open) setText(text, pod ? toYAML({ apiVersion: 'v1', kind: 'Pod', ...pod }) : 'The pod is gone; its object is not kept.'); };
  return { show(value) { pod = value; write(); return panel; } };
}
