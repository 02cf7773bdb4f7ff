// The field whose course is plotted: the reader's choice, at first that of the latest incident.

import { contributions } from "./blame.js";
import { fieldChart } from "./charts.js";
import { askCourse } from "./course.js";
import { byId, element, setText } from "./dom.js";
import { moment, number, partitionName } from "./format.js";

// The band of a second costs the worker a query of its model.
const AGAIN_SECONDS = 2;

export class Fields {
  #rows = new Map(); // by second
  #until = 0;
  #partition = null;
  #entity = null; // the name of the entity whose records are plotted, null for all
  #asking = false;
  #first = null; // the field to begin with

  constructor(choice) {
    this.choice = choice;
    this.chart = fieldChart();
    choice.addEventListener("change", () => this.#forget());
  }

  /** Plot a field of one of these partitions: at first that of an incident and its entity, if there is one. */
  follow(partitions, incident) {
    const names = partitions.map(partitionName);
    if (this.#partition && names.includes(partitionName(this.#partition))) return;
    this.#entity = incident?.entity ?? null;
    this.#partition = partitions[Math.max(0, incident ? names.indexOf(partitionName(incident)) : 0)] ?? null;
    this.#first = incident ? contributions(incident)[0]?.name : null;
    this.choice.replaceChildren();
    this.#showPlace();
    this.#forget();
  }

  /** Plot the records of an entity, null for all of the partition. */
  choose(entity) {
    this.#entity = entity?.entity ?? null;
    if (entity) this.#partition = { topic: entity.topic, partition: entity.partition };
    this.#showPlace();
    this.#forget();
  }

  /** Whether an incident is of the records that are plotted. */
  concerns = (incident) =>
    this.#partition !== null &&
    partitionName(incident) === partitionName(this.#partition) &&
    (this.#entity === null || incident.entity === this.#entity);

  #showPlace() {
    const place = this.#partition ? `of ${partitionName(this.#partition)}` : "";
    setText(byId("field-place"), this.#entity === null ? place : `of ${this.#entity}, with what its next record is expected to be`);
  }

  /** Ask for news of the field, if it is time. */
  look(now) {
    const isTime = now - this.#until > AGAIN_SECONDS || now < this.#until; // the worker's clock may be set back
    if (this.#partition && !this.#asking && isTime) this.#ask();
  }

  /** The rows that are known of the field, from a second on. */
  rows(from) {
    for (const second of this.#rows.keys()) if (second < from) this.#rows.delete(second);
    return [...this.#rows.values()];
  }

  show(rows, from) {
    const last = [...this.#rows.values()].at(-1);
    this.chart.show(rows, from, last ? `${this.choice.value}: ${number(last.value)} at ${moment(last.time)}` : "no values yet");
  }

  #forget() {
    this.#rows.clear();
    this.#until = 0;
  }

  async #ask() {
    this.#asking = true;
    const [partition, entity, asked] = [this.#partition, this.#entity, this.choice.value];
    const answer = await askCourse(partition, asked, this.#until, entity).catch(() => null);
    this.#asking = false;
    if (!answer || partition !== this.#partition || entity !== this.#entity || asked !== this.choice.value) return;
    this.#offer(answer.fields);
    if (!asked) return;
    for (const row of answer.rows) this.#rows.set(row.time, row);
    this.#until = answer.until;
  }

  #offer(names) {
    if (names.length === this.choice.options.length) return;
    this.choice.replaceChildren(...names.map((name) => element("option", { value: name }, name)));
    if (names.includes(this.#first)) this.choice.value = this.#first;
  }
}
