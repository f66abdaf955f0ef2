// Elements are made here and nowhere else, from text and attributes, never from HTML: what
// pods are called and say cannot become an element.

/** el makes an element: el('a', {href: '#/', class: 'back'}, 'text', child, …). Null children are left out. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** svg makes an element of a drawing. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === 'function') node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** setText changes the text of a node if it is another one, and reports whether it was. */
export function setText(node, text) {
  if (node.textContent === text) return false;
  node.textContent = text;
  return true;
}

/** setAttribute does the same for an attribute; null removes it. */
export function setAttribute(node, name, value) {
  if (node.getAttribute(name) === value) return false;
  if (value === null) node.removeAttribute(name);
  else node.setAttribute(name, value);
  return true;
}

export const byId = (id) => document.getElementById(id);
