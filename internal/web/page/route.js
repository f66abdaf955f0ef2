// What the address names: #/ the table, #/node, #/pods/NAMESPACE/NAME. Filters are kept in the address
// as well, after a question mark, so that a link shows what its sender saw.

export function parse(hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').map(decode);
  if (parts[0] === 'pods' && parts.length === 3) return { view: 'pod', namespace: parts[1], name: parts[2] };
  if (parts[0] === 'node') return { view: 'node' };
  const asked = new URLSearchParams(query);
  return {
    view: 'pods',
    filter: { text: asked.get('q') ?? '', state: asked.get('state') ?? '', namespace: asked.get('namespace') ?? '' },
    sort: { column: asked.get('sort') ?? 'state', reverse: asked.has('reverse') },
  };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a broken escape names no pod, and the page says so
  }
}

export const podHref = ({ namespace, name }) => `#/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

/** podsHref is the address of the table with these filters. */
export function podsHref({ text, state, namespace }, { column, reverse }) {
  const query = new URLSearchParams();
  if (text) query.set('q', text);
  if (state) query.set('state', state);
  if (namespace) query.set('namespace', namespace);
  if (column !== 'state') query.set('sort', column);
  if (reverse) query.set('reverse', '');
  const asked = query.toString();
  return asked ? `#/?${asked}` : '#/';
}
