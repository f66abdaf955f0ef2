// Quantities of Kubernetes, such as 250m, 1.5Gi, 2e3.

const suffixes = {
  n: 1e-9, u: 1e-6, m: 1e-3, '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
};

/** parse returns the number that a quantity means, NaN if it is none. */
export function parse(quantity) {
  const found = /^([+-]?[\d.]+(?:[eE][+-]?\d+)?)([a-zA-Z]*)$/.exec(String(quantity));
  return found && found[2] in suffixes ? Number(found[1]) * suffixes[found[2]] : NaN;
}

/** bytes writes a number of bytes with three digits: 1.91 GiB. */
export function bytes(number) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  let rest = number;
  while (rest >= 1024 && unit < units.length - 1) { rest /= 1024; unit++; }
  return `${unit === 0 || rest >= 100 ? Math.round(rest) : Number(rest.toPrecision(3))} ${units[unit]}`;
}

/** amount writes what there is of a resource. */
export function amount(resource, number) {
  if (Number.isNaN(number)) return '?';
  return /memory|storage|hugepages/.test(resource) ? bytes(number) : String(Number(number.toFixed(3)));
}
