// The partitions, entities and groups that bring more or fewer records than usual.

import { byId, element } from "./dom.js";
import { moment, number, partitionName } from "./format.js";

const MILLISECONDS = 1000; // of a second

/** Show rates that are not as usual, null without the setting `rates`. */
export function showRates(rates) {
  byId("rates").hidden = !rates;
  const place = byId("changed-rates");
  const lines = (rates ?? []).map(said);
  const now = JSON.stringify(lines);
  if (place.dataset.shown === now) return;
  place.dataset.shown = now;
  place.replaceChildren(...(lines.length ? lines : ["None at present."]).map((line) => element("li", {}, line)));
}

function said(each) {
  const whose = each.entity === null ? [] : [each.by === null ? each.entity : `${each.by} = ${each.entity}`];
  const since = moment(each.since / MILLISECONDS);
  return [...whose, partitionName(each), `about ${number(each.factor)} times as many records as usual since ${since}`].join(" · ");
}
