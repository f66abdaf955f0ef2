// The clock of the server, as far as this browser knows it. Ages are computed with it, because
// the browser may run on another machine, whose clock is wrong.

// The Date header has whole seconds, so a smaller difference proves nothing.
const noticeable = 2000;

let difference = 0;

/** observe takes the Date header of an answer that was just received. */
export function observe(header, received = Date.now()) {
  const sent = Date.parse(header ?? '');
  if (Number.isNaN(sent)) return;
  difference = Math.abs(sent - received) < noticeable ? 0 : sent - received;
}

export const now = () => Date.now() + difference;

/** skew is by how many milliseconds the server's clock is ahead of the browser's, 0 if not noticeably. */
export const skew = () => difference;
