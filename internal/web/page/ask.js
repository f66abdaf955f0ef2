// Single questions to the query API, beside the watch.

import { observe } from './servertime.js';

const patience = 5000;

/** ask returns the answer, or null if there is none: what is shown is then as old as the page says. */
export async function ask(path) {
  try {
    const response = await fetch(path, { cache: 'no-store', signal: AbortSignal.timeout(patience) });
    observe(response.headers.get('Date'));
    return response.ok ? await response.json() : null;
  } catch {
    return null;
  }
}

export const podPath = (namespace, name) => `apis/v1/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

/** coalesced returns a function that runs work at most once at a time; calls meanwhile are one more run after it. */
export function coalesced(work) {
  let running = false;
  let again = false;
  return async function run() {
    again = true;
    if (running) return;
    running = true;
    while (again) {
      again = false;
      await work();
    }
    running = false;
  };
}
