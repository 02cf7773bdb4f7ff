// The page: asks the worker once a second what is new, and shows it.

import { addressed, showAddressed } from "./addressed.js";
import { Anomalies } from "./anomalies.js";
import { contributions } from "./blame.js";
import { lagChart, likelihoodChart, throughputChart } from "./charts.js";
import { describe } from "./details.js";
import { byId, element, setText } from "./dom.js";
import { Entities, identity } from "./entities.js";
import { EntityChoice, entityOf } from "./entity_choice.js";
import { Fields } from "./fields.js";
import { count, figure, likelihood, moment, partitionName, percent, rate, several } from "./format.js";
import { backlog, figures, History } from "./history.js";
import { Incidents, isOpen } from "./incidents.js";
import { NetworkView } from "./network.js";
import { showRates } from "./rates.js";
import { makeTabs } from "./tabs.js";
import { forest, readNetwork, unread } from "./tree.js";
import { ask } from "./worker.js";

const POLL_MILLISECONDS = 1000;
const STRUCTURE_SECONDS = 5;
// Larger networks cost the worker some time: they are read when somebody asks for them.
const MOST_AT_FIRST = 10_000;
const MOST_PARTITIONS_AT_FIRST = 16;
const MOST_AGAIN = 2000;
const ZOOM_FACTOR = 1.4;

const charts = { throughput: throughputChart(), lag: lagChart(), likelihood: likelihoodChart() };
const anomalies = new Anomalies(byId("anomalies"));
const incidents = new Incidents(byId("incidents"), byId("more-incidents"));
const entities = new Entities(byId("entities"), choose);
const entityChoice = new EntityChoice(byId("entity-choice"), onlyPartition, choose);
const fields = new Fields(byId("field-choice"));
const filter = byId("filter");
const details = byId("details");
const network = new NetworkView(byId("tree"), (node) => describe(details, node));
const chosen = byId("chosen");

let history;
let held; // the worker's partitions, as it last told
let drawn; // what is known of the structure that is shown
let view = "overview"; // the tab that is shown
let entity; // the chosen one: its place and name; null for all
let namedBy = null; // the setting `entity`
let lost = null; // since when the worker has not answered

function forget() {
  history = new History();
  held = [];
  drawn = { learned: 0, at: 0 };
  anomalies.clear();
  entities.clear();
  incidents.clear();
  fields.follow([]);
  choose(null);
  network.clear();
  describe(details, null);
}

/** The chosen partition, null for all. */
function onlyPartition() {
  return chosen.value ? JSON.parse(chosen.value) : null;
}

/** Show fields, incidents and anomalies of an entity, null for all. */
function choose(found) {
  entity = found;
  entityChoice.show(found);
  fields.choose(found);
  entities.show(found);
  applyFilter();
}

const now = () => Date.now() / 1000;

async function look() {
  const asked = chosen.value;
  const news = await ask("live", { ...onlyPartition(), since: history.until }).catch(showLoss);
  if (!news || asked !== chosen.value) return;
  held = news.partitions;
  namedBy = news.entity;
  byId("entity-choice").hidden = namedBy === null;
  showState(news);
  offer(held);
  const partitions = partitionsChosen();
  incidents.add(news.incidents, partitions, news.until);
  anomalies.add(news.anomalies);
  entities.add(news.entities, news.silent);
  showRates(news.rates);
  history.add(news, incidents.known, fields.concerns);
  showWarmUp(partitions);
  if (view === "network") await lookAtStructure();
  else showOverview(partitions);
}

function showOverview(partitions) {
  fields.follow(partitions, incidents.known[0]);
  fields.look(history.until);
  history.setCourse(fields.rows(history.shown().from));
  showFigures();
  showIncidents();
  showNodes(partitions);
}

/** How many records the young models still need. */
function showWarmUp(partitions) {
  const young = partitions.filter((partition) => partition.warm_up_left > 0);
  const [first] = young;
  byId("warm-up").hidden = !first;
  if (!first) return;
  const others = young.length - 1;
  const also = others ? `, and so ${others === 1 ? "does" : "do"} ${several(others, "more partition")}` : "";
  setText(byId("warm-up"), `Warming up: ${partitionName(first)} needs ${several(first.warm_up_left, "more record")}${also}. Until then scores are rough.`);
}

function showIncidents() {
  const { open } = incidents;
  const worst = open.toSorted((a, b) => b.severity - a.severity)[0];
  setText(byId("open-incidents"), count(open.length));
  setText(byId("worst"), worst ? `worst: ${worst.severity_name}` : "none");
  byId("worst").dataset.severity = worst?.severity_name ?? "";
}

function showState(news) {
  lost = null;
  showStatus(news.waiting_for ? "waiting" : "live", news.waiting_for ?? "live");
  setText(byId("app-id"), `group ${news.app_id}`);
  setText(byId("version"), `faust-oslrau ${news.version}`);
  setText(byId("rate-note"), `the most unusual ${percent(news.alarm_rate)} of records; bars: which fields are to blame`);
}

function showLoss() {
  lost ??= now();
  showStatus("disconnected", `disconnected since ${moment(lost)}, trying again`);
}

function showStatus(state, text) {
  byId("status").dataset.state = state;
  setText(byId("status"), text);
}

/** Offer the partitions to choose from; one that moved away stays while it is chosen. */
function offer(partitions) {
  const names = new Map(partitions.map(({ topic, partition }) => [JSON.stringify({ topic, partition }), partitionName({ topic, partition })]));
  const [all, ...known] = chosen.options;
  const kept = chosen.value;
  if (kept && !names.has(kept)) names.set(kept, partitionName(JSON.parse(kept)));
  if (known.map((option) => option.value).join() === [...names.keys()].join()) return;
  chosen.replaceChildren(all, ...[...names].map(([value, name]) => element("option", { value }, name)));
  chosen.value = kept;
}

function showFigures() {
  const { from, rows } = history.shown();
  const found = figures(rows);
  setText(byId("rate"), rate(found.rate));
  setText(byId("lag"), figure(found.lag));
  setText(byId("anomaly-count"), figure(found.anomalies));
  setText(byId("rejected-count"), figure(found.rejected));
  setText(byId("usual"), likelihood(found.median));
  setText(byId("backlog"), backlog(found));
  charts.throughput.show(rows, from, `Throughput: ${count(found.rate)} records a second`);
  charts.lag.show(rows, from, `Lag: ${count(found.lag)} records`);
  charts.likelihood.show(rows, from, `Log-likelihood: median ${likelihood(found.median)}`);
  fields.show(rows, from);
}

function showNodes(partitions) {
  setText(byId("nodes"), figure(total(partitions)));
  setText(byId("nodes-note"), partitions.length === 1 ? "nodes" : `nodes, ${partitions.length} partitions`);
}

const total = (partitions) => partitions.reduce((sum, partition) => sum + partition.nodes, 0);
const learned = (parts) => parts.reduce((sum, part) => sum + part.learned, 0);

function partitionsChosen() {
  const only = onlyPartition();
  return only ? held.filter((p) => p.topic === only.topic && p.partition === only.partition) : held;
}

/** The chosen partitions that have a network. */
const networksChosen = () => partitionsChosen().filter((partition) => partition.nodes > 0);

/** Draw the structure at first, and again by itself until somebody explores it. */
async function lookAtStructure() {
  const mine = networksChosen();
  const isNew = learned(mine) > drawn.learned;
  showNewer(isNew && network.wasTouched);
  const isDue = now() - drawn.at > STRUCTURE_SECONDS && total(mine) <= MOST_AGAIN;
  if (!network.root || (isNew && isDue && !network.wasTouched)) await drawStructure(mine);
  if (!network.root) setText(byId("network-note"), "nothing learned yet");
}

/** Tell at the button whether the worker has learned since the drawing. */
function showNewer(isNewer) {
  byId("update").classList.toggle("ready", isNewer);
  byId("update").title = isNewer ? "The worker has learned more since this drawing" : "";
}

async function drawStructure(mine) {
  const asked = chosen.value;
  const isNewer = network.root !== null && mine.length === drawn.partitions;
  const few = mine.length === 1 || (mine.length <= MOST_PARTITIONS_AT_FIRST && total(mine) <= MOST_AT_FIRST);
  const roots = (await Promise.all(mine.map((partition) => (few ? read(partition) : later(partition))))).filter(Boolean);
  if (asked !== chosen.value || !roots.length) return;
  network.show(roots.length === 1 ? roots[0] : forest(roots, "this worker"), isNewer);
  // What the drawing shows: the worker's answer may be some seconds old.
  drawn = { learned: learned(roots), at: now(), partitions: mine.length };
  setText(byId("network-note"), `${count(total(mine))} nodes after ${count(drawn.learned)} records`);
}

async function read({ topic, partition }) {
  const found = await ask("model", { topic, partition }).catch(showLoss);
  return found && Object.assign(readNetwork(found), { title: partitionName(found), learned: found.learned });
}

/** A network that is read when it is opened. */
function later(partition) {
  const node = unread(partitionName(partition), partition.nodes, () => read(partition));
  return Object.assign(node, { learned: partition.learned });
}

async function repeat() {
  try {
    if (!document.hidden) await look();
  } finally {
    setTimeout(repeat, POLL_MILLISECONDS);
  }
}

/** The names by which an incident or an anomaly is found: its fields, and its entity or key. */
const namesOf = (event) => [...contributions(event).map(({ name }) => name), String(event.entity ?? event.key ?? "")];

/** Whether an event of an entity of this name is one of the chosen entity. */
const isChosen = (event, name) => !entity || identity({ ...event, entity: name }) === identity(entity);

/** Show incidents and anomalies that the filter lets pass; anomalies have no state or severity. */
function applyFilter() {
  const { name: searched, state, severity } = Object.fromEntries(new FormData(filter));
  const part = searched.trim().toLowerCase();
  const hasName = (event) => !part || namesOf(event).some((name) => name.toLowerCase().includes(part));
  const hasState = (event) => !state || isOpen(event) === (state === "open");
  incidents.filter((event) => isChosen(event, event.entity) && hasName(event) && hasState(event) && (!severity || event.severity_name === severity));
  anomalies.filter((event) => isChosen(event, entityOf(event, namedBy)) && hasName(event));
}

filter.addEventListener("input", applyFilter);
filter.addEventListener("change", applyFilter);
filter.addEventListener("submit", (event) => event.preventDefault());
chosen.addEventListener("change", () => {
  forget();
  look();
});
byId("update").addEventListener("click", () => drawStructure(networksChosen()));
byId("expand").addEventListener("click", () => network.root && network.expand());
byId("collapse").addEventListener("click", () => network.root && network.collapse());
byId("fit").addEventListener("click", () => network.root && network.fit());
byId("closer").addEventListener("click", () => network.zoomBy(ZOOM_FACTOR));
byId("farther").addEventListener("click", () => network.zoomBy(1 / ZOOM_FACTOR));

/** Begin with the incident of the page's address: with its partition, its entity and its field. */
async function begin(where) {
  const { topic, partition } = where;
  const value = JSON.stringify({ topic, partition });
  chosen.append(element("option", { value }, partitionName(where)));
  chosen.value = value;
  const incident = await showAddressed(where);
  if (!incident) return;
  fields.follow([incident], incident);
  if (incident.entity) choose(incident);
}

forget();
const where = addressed();
if (where) begin(where);
makeTabs(byId("tabs"), (name) => {
  view = name;
});
repeat();
