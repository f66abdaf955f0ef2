// The page of one pod.

import { alerts } from './alerts.js';
import { ask, podPath } from './ask.js';
import { byId, el, setAttribute, setText } from './dom.js';
import { containers, probes } from './containers.js';
import { delivery } from './delivery.js';
import { differences } from './differences.js';
import { explanation } from './explanation.js';
import { historyTable } from './historytable.js';
import { LiveLog } from './livelog.js';
import { pictures } from './pictures.js';
import { podLoad } from './load.js';
import { keyOf } from './pods.js';
import { Sections } from './sections.js';
import { sign, stateOf, tone, word } from './states.js';
import { tick } from './ticking.js';
import { Timeline } from './timeline.js';
import { isUTC, span } from './times.js';
import { toYAML } from './yaml.js';

export class PodView {
  constructor(onChange) {
    this.onChange = onChange;
    this.element = byId('pod-view');
    this.title = byId('pod-title');
    this.badge = byId('pod-badge');
    this.drift = byId('pod-drift');
    this.line = byId('pod-line');
    this.missing = byId('pod-missing');
    this.sections = new Sections(byId('pod-sections'), ['Why', 'Differences', 'Sides', 'Timeline', 'Containers', 'Log', 'Alerts', 'Probes', 'Load', 'Delivery', 'History']);
    this.timeline = new Timeline();
    this.yaml = yamlPanel();
    this.detail = null;
    this.takes = 0; // how many details were taken
  }

  get watch() { return `apis/v1/watch?pod=${encodeURIComponent(this.key)}`; }

  /** show begins with a pod; what was shown of another one goes at once. */
  show({ namespace, name }) {
    const key = `${namespace}/${name}`;
    if (key !== this.key) {
      this.key = key;
      this.path = podPath(namespace, name);
      this.detail = null;
      this.sections.clear();
      this.timeline = new Timeline();
      this.yaml = yamlPanel();
      this.live = new LiveLog({ namespace, name });
    }
    setText(this.title, key);
    this.missing.hidden = true;
    this.badge.hidden = this.detail === null;
    this.drift.hidden = !this.detail?.drift;
    setText(this.line, this.detail ? this.line.textContent : '');
  }

  handle(type, data) {
    if (type === 'detail' && keyOf(data) === this.key) this.#take(data);
    if (type === 'gone' && data.uid === this.detail?.uid) this.refresh().then(() => this.onChange());
  }

  #take(detail) {
    this.detail = detail;
    this.takes++;
    this.missing.hidden = true;
  }

  /** refresh asks for the pod again, unless the watch is faster. */
  async refresh() {
    const { key, takes } = this;
    const detail = await ask(this.path);
    if (detail && this.key === key && this.takes === takes) this.#take(detail);
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
    this.badge.hidden = false;
    const mood = tone(stateOf(d));
    setText(this.badge, `${sign(mood)} ${word(stateOf(d))}`);
    setAttribute(this.badge, 'data-tone', mood);
    this.drift.hidden = !d.drift;
    const zone = isUTC();
    this.#section('Why', [d.explanation, zone], () => explanation(d, now));
    const observed = Boolean(d.pictures?.length || d.differences?.length);
    this.#optional('Differences', observed, [d.differences, zone], () => differences(d.differences, now));
    this.#optional('Sides', d.pictures?.length, [d.pictures, zone], () => pictures(d.pictures, now));
    this.#optional('Alerts', d.alertDetails?.length, [d.alertDetails, zone], () => alerts(d.alertDetails, now));
    this.#section('Timeline', [d.history, d.alertDetails, d.gone, zone], () => this.timeline.update(d, now));
    this.#section('Containers', [d.containerDetails, zone], () => containers(d, now));
    const served = d.logsServed && !d.gone && d.containerDetails?.length > 0;
    this.#optional('Log', served, [], () => this.live.element);
    if (served) this.live.show(d.containerDetails);
    this.#section('Probes', [d.containerDetails, zone], () => probes(d, now));
    this.#optional('Load', d.load, [d.load], () => podLoad(d.load));
    const reports = !(observed && d.delivery.version === 0); // beside a kubelet it is the kubelet that does
    this.#optional('Delivery', reports, [d.delivery, zone], () => delivery(d, now));
    this.#section('History', [d.history, zone], () => historyTable(d.history, now));
    this.#section('YAML', [d.pod], () => this.yaml.show(d.pod));
    this.tick(now);
  }

  // #optional is a section that is there only while there is something to show.
  #optional(title, there, key, make) {
    if (there) this.#section(title, key, make);
    else this.sections.drop(title);
  }

  #section(title, key, make) {
    this.sections.put(title, JSON.stringify(key), make);
  }

  /** tick shows what changes with time alone: ages and countdowns, and the end of the timeline. */
  tick(now) {
    const d = this.detail;
    if (!d) return;
    setText(this.line, summary(d, now));
    this.timeline.layout(now);
    tick(this.element, now);
  }
}

function summary(d, now) {
  const parts = [
    d.status, `${d.ready}/${d.containers} ready`, d.restarts === 1 ? '1 restart' : `${d.restarts} restarts`,
    d.created ? `age ${span((d.gone ? Date.parse(d.gone) : now) - Date.parse(d.created))}` : '',
    d.gone ? `gone for ${span(now - Date.parse(d.gone))}` : '', d.ip ?? '', d.static ? 'static' : '', `UID ${d.uid}`,
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
