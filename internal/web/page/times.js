// Times as people read them. The server sends instants; the zone is that of the browser, or UTC.

let utc = false;

export const isUTC = () => utc;
export function useUTC(on) { utc = on; }

const two = (n) => String(n).padStart(2, '0');

// parts splits an instant into what the zone in use calls it.
function parts(date) {
  if (utc) {
    return {
      year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate(),
      hour: date.getUTCHours(), minute: date.getUTCMinutes(), second: date.getUTCSeconds(), offset: 0,
    };
  }
  return {
    year: date.getFullYear(), month: date.getMonth() + 1, day: date.getDate(),
    hour: date.getHours(), minute: date.getMinutes(), second: date.getSeconds(), offset: -date.getTimezoneOffset(),
  };
}

const dayOf = (p) => `${p.year}-${two(p.month)}-${two(p.day)}`;
const timeOf = (p) => `${two(p.hour)}:${two(p.minute)}:${two(p.second)}`;

/** offset is how a zone is written after a time: Z, +02:00, -03:30. */
export function offset(minutes) {
  if (minutes === 0) return 'Z';
  const size = Math.abs(minutes);
  return `${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

/** clock is the time of day of an instant, with the date if it is not today. */
export function clock(instant, now) {
  const at = parts(new Date(instant));
  const today = dayOf(parts(new Date(now))) === dayOf(at);
  return today ? timeOf(at) : `${dayOf(at)} ${timeOf(at)}`;
}

/** full is an instant with date and zone. */
export function full(instant) {
  const at = parts(new Date(instant));
  return `${dayOf(at)} ${timeOf(at)} ${offset(at.offset)}`;
}

/** zone names the zone in use, as full writes it. */
export function zone(now) {
  const { offset: minutes } = parts(new Date(now));
  return minutes === 0 ? 'UTC' : `UTC${offset(minutes)}`;
}

/** age is how kubectl writes how old something is: two units while the smaller one matters. */
export function age(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return pair(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return pair(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  if (days < 8) return pair(days, 'd', hours % 24, 'h');
  if (days < 730) return `${days}d`;
  return pair(Math.floor(days / 365), 'y', days % 365, 'd');
}

/** span says how long in sentences, as the server does: "38 s", "2 min 5 s", "3 h 2 min", "4 d". */
export function span(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  const two = (big, unit, small, smaller) => `${big} ${unit}${small > 0 ? ` ${small} ${smaller}` : ''}`;
  if (days > 0) return two(days, 'd', hours, 'h');
  if (hours > 0) return two(hours, 'h', minutes, 'min');
  if (minutes > 0) return two(minutes, 'min', seconds % 60, 's');
  return `${seconds} s`;
}

const pair = (big, bigUnit, small, smallUnit) => `${big}${bigUnit}${small > 0 ? small + smallUnit : ''}`;

/** lag is how long something waits: milliseconds matter below ten seconds. */
export function lag(milliseconds) {
  if (milliseconds < 1000) return `${Math.max(0, Math.round(milliseconds))}ms`;
  if (milliseconds < 10000) return `${(milliseconds / 1000).toFixed(1)}s`;
  return age(milliseconds);
}
