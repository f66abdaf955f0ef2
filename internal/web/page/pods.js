// The pods of the node as the watch has sent them.

export const keyOf = (pod) => `${pod.namespace}/${pod.name}`;

// Of pods that are gone there may be several of a name.
const goneKey = (pod) => `gone ${pod.uid}`;

/** Pods takes the events of a watch; changed and removed collect keys until take is called. */
export class Pods {
  all = new Map();
  #dirty = new Set();
  #unseen = null; // while a whole list arrives: what it has not named yet

  handle(type, data) {
    switch (type) {
      case 'pod': return this.#put(data);
      case 'gone': return this.#remove(keyOf(data), data.uid);
      case 'reset': this.#unseen = new Set(this.present.map(keyOf)); return undefined;
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

  /** setGone takes the list of pods that are gone and still remembered. */
  setGone(list) {
    const keys = new Set(list.map(goneKey));
    for (const [key, pod] of this.all) if (pod.gone && !keys.has(key)) this.#remove(key);
    for (const pod of list) {
      if (this.all.has(goneKey(pod))) continue;
      this.all.set(goneKey(pod), pod);
      this.#dirty.add(goneKey(pod));
    }
  }

  /** present are the pods that are not gone. */
  get present() { return [...this.all.values()].filter((pod) => !pod.gone); }

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
