// The entities that alarm most, those that are unusual as a whole, and those that are silent; what is known of a chosen one.

import { byId, element } from "./dom.js";
import { duration, moment, number, odds, partitionName, several } from "./format.js";
import { ask } from "./worker.js";

const KEPT = 10;
const DIGITS = 3;
const MILLISECONDS = 1000; // of a second
const HEADINGS = ["field", "level", "usual", "spread", "usual", "next value expected"];

export class Entities {
  #unusual = new Map(); // the newest event of each entity, by its place and name
  #chosen = null; // place and name of the entity that is shown

  /** `choose` takes the entity whose button was pressed. */
  constructor(section, choose) {
    Object.assign(this, { section, choose });
    this.clear();
  }

  clear() {
    this.#unusual.clear();
    this.#chosen = null;
    byId("entity").replaceChildren();
  }

  /** Show what is new, null without the setting `entity`, and who is `silent`, null without the setting `silences`. */
  add(news, silent) {
    this.section.hidden = !news;
    if (!news) return;
    byId("silences").hidden = !silent;
    if (silent) show(byId("silent"), silent, since, this.choose);
    for (const event of news.events) this.#unusual.set(identity(event), event);
    const unusual = [...this.#unusual.values()].filter(({ state }) => state !== "usual").toReversed().slice(0, KEPT);
    show(byId("alarming"), news.alarming, (each) => several(each.anomalies, "anomaly", "anomalies"), this.choose);
    show(byId("unusual"), unusual, said, this.choose);
  }

  /** Show what is usual for an entity, null for none. */
  async show(entity) {
    this.#chosen = entity && identity(entity);
    if (!entity) {
      byId("entity").replaceChildren();
      return;
    }
    const { topic, partition, entity: name } = entity;
    const found = await ask("entity", { topic, partition, entity: name }).catch(() => null);
    if (this.#chosen !== identity(entity)) return;
    byId("entity").replaceChildren(...(found ? profile(entity, found) : [`${name}: the worker knows nothing of it`]));
  }
}

export const identity = (entity) => JSON.stringify([entity.topic, entity.partition, entity.entity]);
const said = (event) => `${event.state}${event.aspects ? `: ${aspect(event.aspects[0])}` : ""} · ${moment(event.noted)}`;

const since = (each) => `since ${moment(each.last_timestamp / MILLISECONDS)}, usual up to ${duration(each.limit)}`;

/** What differs, and how far from what is usual for all entities. */
function aspect({ aspect: name, field, value, usual, deviations }) {
  const [own, others] = [value, usual].map((each) => number(each, DIGITS));
  const far = `${number(Math.abs(deviations), 2)} times as far from the others as is usual`;
  if (field === null) return `other kinds of records, ${far}`;
  return name === "level" ? `${field} is around ${own}, usual ${others}, ${far}` : `${field} varies by ± ${own}, usual ± ${others}, ${far}`;
}

/** Show entities as buttons with what is said of them; those that stay keep the focus. */
function show(place, entities, tell, choose) {
  const texts = entities.map(tell);
  const now = JSON.stringify(entities.map((each, i) => [identity(each), texts[i]]));
  if (place.dataset.shown === now) return;
  place.dataset.shown = now;
  place.replaceChildren(...(entities.length ? entities.map((each, i) => item(each, texts[i], choose)) : [element("li", { class: "quiet" }, "None so far.")]));
}

function item(entity, text, choose) {
  const button = element("button", { type: "button" }, entity.entity);
  button.addEventListener("click", () => choose(entity));
  return element("li", {}, button, element("span", { class: "quiet" }, ` ${partitionName(entity)} · ${text}`));
}

/** What the worker knows of an entity: a heading and a row for each field. */
function profile(entity, { entity_p_value: unusual, fields }) {
  const among = unusual === null ? "not comparable yet" : odds(unusual, "entities");
  const rows = fields.map((field) => cells("td", [
    field.field, number(field.level, DIGITS), number(field.usual_level, DIGITS), number(field.spread, DIGITS),
    number(field.usual_spread, DIGITS), `${number(field.expected, DIGITS)} ± ${number(field.deviation, 2)}`,
  ]));
  return [
    element("h3", {}, `${entity.entity} · ${partitionName(entity)} · ${among}`),
    // The table scrolls where it is wider than the page: with keys, too.
    element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": `Fields of ${entity.entity}` }, element("table", {}, cells("th", HEADINGS), ...rows)),
  ];
}

const cells = (kind, texts) => element("tr", {}, ...texts.map((text) => element(kind, {}, text)));
