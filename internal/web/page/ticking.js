// Text that changes with time alone, such as an age. It is changed in place, so that a reader can select what is around it.

import { el, setText } from './dom.js';

const texts = new WeakMap(); // element → function of the time

/** ticking makes an element whose text is a function of the time. */
export function ticking(text, now, kind = '') {
  const element = el('span', { class: `ticking ${kind}` }, text(now));
  texts.set(element, text);
  return element;
}

/** tick brings all of them below an element up to date. */
export function tick(root, now) {
  for (const element of root.querySelectorAll('.ticking')) setText(element, texts.get(element)(now));
}
