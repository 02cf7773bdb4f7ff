// The choice of an entity by its name, or by a part of it that no other name has.

import { byId, element, setText } from "./dom.js";
import { partitionName } from "./format.js";
import { ask } from "./worker.js";

const PAUSE_MILLISECONDS = 200; // of a reader who types, before names are asked for
const MOST = 20; // names in an answer

export class EntityChoice {
  #typed = null; // the timer of what was typed last

  /**
   * @param form what holds the name
   * @param where returns the chosen partition, null for all
   * @param choose takes the chosen entity, null for all
   */
  constructor(form, where, choose) {
    Object.assign(this, { form, where, choose });
    this.name = byId("entity-name");
    for (const kind of ["focus", "input"]) this.name.addEventListener(kind, () => this.#offerSoon());
    this.name.addEventListener("change", () => this.#find());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#find();
    });
  }

  /** Show an entity as the chosen one, null for none. */
  show(entity) {
    this.name.value = entity?.entity ?? "";
    setText(byId("entity-note"), entity ? `in ${partitionName(entity)}` : "");
  }

  #offerSoon() {
    clearTimeout(this.#typed);
    this.#typed = setTimeout(() => this.#offer(), PAUSE_MILLISECONDS);
  }

  async #offer() {
    const found = await this.#ask();
    if (!found) return;
    const names = new Set(found.map(({ entity }) => entity));
    byId("entity-names").replaceChildren(...[...names].map((value) => element("option", { value })));
  }

  async #find() {
    clearTimeout(this.#typed);
    if (!this.name.value) {
      this.choose(null);
      return;
    }
    const found = await this.#ask();
    if (!found) return;
    const exact = found.find(({ entity }) => entity === this.name.value);
    if (exact || found.length === 1) this.choose(exact ?? found[0]);
    else setText(byId("entity-note"), this.#noneOf(found));
  }

  #noneOf(found) {
    if (!found.length) return `no entity has “${this.name.value}” in its name`;
    return `${found.length < MOST ? found.length : `${MOST} or more`} entities have this in their name`;
  }

  /** The entities whose name has what is typed in it; null if the worker does not answer. */
  async #ask() {
    const asked = this.name.value;
    const answer = await ask("entities", { ...this.where(), name: asked }).catch(() => null);
    return answer && asked === this.name.value ? answer.entities : null;
  }
}

/** The name of the entity of an anomaly; `by` is the setting `entity`. */
export function entityOf({ key, record }, by) {
  if (by === "key") return key;
  const found = by?.split(".").reduce((inner, name) => inner?.[name], record);
  return found === undefined || found === null ? null : String(found);
}
