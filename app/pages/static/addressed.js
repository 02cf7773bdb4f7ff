// The incident that the page's address names, above all others.

import { byId, element, setText } from "./dom.js";
import { card } from "./incidents.js";
import { partitionName } from "./format.js";
import { ask } from "./worker.js";

const AGAIN_MILLISECONDS = 5000;

/** Topic, partition and opening offset of the incident in the page's address; null without one. */
export function addressed() {
  const [, ...found] = /\/incidents\/([^/]+)\/(\d+)\/(\d+)$/.exec(location.pathname) ?? [];
  if (!found.length) return null;
  const [topic, partition, offset] = found.map(decodeURIComponent);
  return { topic, partition: Number(partition), offset };
}

/** Show the incident, while it is open as it stands; returns it, null without an answer. */
export async function showAddressed(where) {
  const found = await ask("incident", where).catch(() => null);
  if (found) show(found);
  if (found?.incident.state !== "closed") setTimeout(() => showAddressed(where), AGAIN_MILLISECONDS);
  return found?.incident ?? null;
}

function show({ incident, is_held: isHeld }) {
  const section = byId("addressed");
  const isFirst = section.hidden;
  section.hidden = false;
  setText(byId("addressed-name"), `Incident ${incident.incident}`);
  setText(byId("elsewhere"), isHeld ? "" : `This worker does not hold ${partitionName(incident)}: here is what the anomalies topic tells of it. Its charts are on the page of the worker that does.`);
  const known = section.querySelector(".incident");
  const version = `${incident.offset} ${incident.state}`;
  if (known?.dataset.version === version) return;
  const made = card(incident);
  made.dataset.version = version;
  made.querySelector("details").open = true;
  if (known) known.replaceWith(made);
  else section.append(element("div", { class: "cards" }, made));
  if (isFirst) section.focus();
}
