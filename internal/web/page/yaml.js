// JSON values as YAML, in the style of kubectl: two spaces, lists at the indentation of their key, text
// quoted when it could be read as something else.

export function toYAML(value) {
  return `${lines(value, '').join('\n')}\n`;
}

// lines are those of a value that begins on a line of its own.
function lines(value, indent) {
  if (Array.isArray(value) && value.length > 0) return value.flatMap((item) => listItem(item, indent));
  if (isMap(value)) return entries(value).flatMap(([key, item]) => mapItem(key, item, indent));
  return block(value, `${indent}  `).map((line, i) => (i === 0 ? indent + line : line));
}

const isMap = (value) => value !== null && typeof value === 'object' && !Array.isArray(value) && entries(value).length > 0;
const entries = (value) => Object.entries(value).filter(([, item]) => item !== undefined);

function mapItem(key, value, indent) {
  const name = `${indent}${text(key)}:`;
  if (Array.isArray(value) && value.length > 0) return [name, ...lines(value, indent)];
  if (isMap(value)) return [name, ...lines(value, `${indent}  `)];
  const [first, ...rest] = block(value, `${indent}  `);
  return [`${name} ${first}`, ...rest];
}

// listItem writes the dash over the indentation of the first line.
function listItem(item, indent) {
  const deeper = `${indent}  `;
  if (isMap(item) || (Array.isArray(item) && item.length > 0)) {
    const [first, ...rest] = lines(item, deeper);
    return [`${indent}- ${first.slice(deeper.length)}`, ...rest];
  }
  const [first, ...rest] = block(item, deeper);
  return [`${indent}- ${first}`, ...rest];
}

// block is a scalar; text of several lines becomes a literal block if that can hold it exactly.
function block(value, indent) {
  if (typeof value === 'string' && literal.test(value)) {
    const body = value.replace(/\n$/, '').split('\n');
    return [value.endsWith('\n') ? '|' : '|-', ...body.map((line) => (line === '' ? '' : indent + line))];
  }
  return [scalar(value)];
}

// A literal block holds printable lines, the first and last of them not empty, none with spaces at an end.
const literal = /^[^\s](?:[^\p{C}\s]| (?! *\n| *$))*(?:\n(?:[^\p{C}\s]| (?! *\n| *$))+)+\n?$/u;

function scalar(value) {
  if (typeof value === 'string') return text(value);
  if (Array.isArray(value)) return '[]';
  return value !== null && typeof value === 'object' ? '{}' : String(value);
}

// plain is text that YAML 1.1 and 1.2 read as text without quotes.
const plain = /^[A-Za-z_/.][\w ./@%+=,()-]*$/;
const special = /^(?:y|n|yes|no|on|off|true|false|null|nan|inf|[-+.]?\.?(?:inf|nan)|\.+|=|<<)$/i;
const numeric = /^[.\d+-]/;

function text(value) {
  const free = plain.test(value) && !special.test(value) && !numeric.test(value) && !/\s$|,$/.test(value);
  return free ? value : escape(JSON.stringify(value));
}

// JSON leaves some characters as they are that YAML does not print.
const escape = (quoted) => quoted.replace(/[\u007f-\u00a0\u2028\u2029\ufeff\ufffe\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
