// Server-sent events as the HTML standard defines their format. EventSource is not used: it hides
// the heartbeats, without which a dead connection looks like a quiet one, and gives up on errors of the server.

/** Parser takes pieces of a stream and returns the events that they complete. */
export class Parser {
  #rest = '';
  #event = blank();

  feed(text) {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop();
    const events = [];
    for (const line of lines.map((l) => l.replace(/\r$/, ''))) {
      if (line !== '') this.#field(line);
      else if (this.#event.type !== '' || this.#event.data.length > 0) events.push(this.#finish());
    }
    return events;
  }

  #field(line) {
    const colon = line.indexOf(':');
    if (colon === 0) return; // a comment: the heartbeat
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'event') this.#event.type = value;
    else if (name === 'id') this.#event.id = value;
    else if (name === 'data') this.#event.data.push(value);
  }

  #finish() {
    const { type, id, data } = this.#event;
    this.#event = blank();
    return { type: type || 'message', id, data: data.join('\n') };
  }
}

const blank = () => ({ type: '', id: null, data: [] });
