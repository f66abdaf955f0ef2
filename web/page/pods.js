// The pods of the node as the watch has sent them.

export const keyOf = (pod) => `${pod.namespace}/${pod.name}`;

/** Pods takes the events of a watch; changed and removed collect keys until take is called. */
export class Pods {
  all = new Map();
  #dirty = new Set();
  #unseen = null; // while a whole list arrives: what it has not named yet

  handle(type, data) {
    switch (type) {
      case 'pod': return this.#put(data);
      case 'gone': return this.#remove(keyOf(data), data.uid);
      case 'reset': this.#unseen = new Set(this.all.keys()); return undefined;
      case 'synced': return this.#finish();
      default: return undefined;
    }
  }

  #put(pod) {
    const key = keyOf(pod);
    this.#unseen?.delete(key);
    this.all.set(key, pod);
    this.#dirty.add(key);
  }

  // A pod of the same name may have come since: only the pod that is meant goes.
  #remove(key, uid) {
    if (uid && this.all.get(key)?.uid !== uid) return;
    if (this.all.delete(key)) this.#dirty.add(key);
  }

  #finish() {
    for (const key of this.#unseen ?? []) this.#remove(key);
    this.#unseen = null;
  }

  /** take returns the keys that have changed since the last call. */
  take() {
    const dirty = this.#dirty;
    this.#dirty = new Set();
    return dirty;
  }
}
