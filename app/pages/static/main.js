// The page: asks the worker once a second what is new, and shows it.

import { Anomalies } from "./anomalies.js";
import { lagChart, likelihoodChart, throughputChart } from "./charts.js";
import { describe } from "./details.js";
import { byId, element, setText } from "./dom.js";
import { count, nats, time } from "./format.js";
import { NetworkView } from "./network.js";
import { forest, readNetwork, unread } from "./tree.js";

const SECONDS = 300;
const LEAST_SECONDS = 60;
const RECENT = 10;
const POLL_MILLISECONDS = 1000;
const PATIENCE_MILLISECONDS = 5000;
const STRUCTURE_SECONDS = 5;
// Larger networks cost the worker some time: they are read when somebody asks for them.
const MOST_AT_FIRST = 10_000;
const MOST_AGAIN = 2000;

const charts = { throughput: throughputChart(), lag: lagChart(), likelihood: likelihoodChart() };
const anomalies = new Anomalies(byId("anomalies"));
const details = byId("details");
const network = new NetworkView(byId("tree"), (node) => describe(details, node));
const chosen = byId("chosen");

let history; // one row a second by seconds since 1970
let until; // up to when it is known
let drawn; // what is known of the structure that is shown

function forget() {
  history = new Map();
  until = 0;
  drawn = { learned: 0, at: 0 };
  anomalies.clear();
  network.clear();
  describe(details, null);
}

/** What to ask for: the chosen partition, or nothing for all. */
const place = () => (chosen.value ? JSON.parse(chosen.value) : null);

function query(parameters) {
  return new URLSearchParams({ ...place(), ...parameters }).toString();
}

/** The worker's answer, null where it has no such thing (any more). */
async function ask(page, parameters) {
  const answer = await fetch(`${page}?${query(parameters)}`, { signal: AbortSignal.timeout(PATIENCE_MILLISECONDS) });
  if (answer.status === 404) return null;
  if (!answer.ok) throw new Error(`${page}: ${answer.status}`);
  return answer.json();
}

async function look() {
  const asked = chosen.value;
  const news = await ask("live", { since: until }).catch(showLoss);
  if (!news || asked !== chosen.value) return;
  showState(news);
  remember(news);
  markDrifts(news.events);
  showNumbers(news);
  anomalies.add(news.anomalies);
  await lookAtStructure(news.partitions);
}

function showState(news) {
  const waiting = news.waiting_for;
  status(waiting ? "waiting" : "live", waiting ?? "live");
  setText(byId("app-id"), `group ${news.app_id}`);
  setText(byId("version"), `faust-oslrau ${news.version}`);
  setText(byId("rate-note"), `p-value of at most ${news.alarm_rate}; bars: nats by which a field is less likely than usual, given the others`);
  offer(news.partitions);
}

let lost = null;

function showLoss() {
  lost ??= Date.now() / 1000;
  byId("status").dataset.state = "disconnected";
  setText(byId("status"), `disconnected since ${time(lost)}, trying again`);
}

function status(state, text) {
  lost = null;
  byId("status").dataset.state = state;
  setText(byId("status"), text);
}

/** Offer the partitions to choose from; one that moved away stays while it is chosen. */
function offer(partitions) {
  const values = partitions.map(({ topic, partition }) => JSON.stringify({ topic, partition }));
  const known = [...chosen.options].slice(1);
  if (known.map((option) => option.value).join() === values.join()) return;
  for (const option of known) if (option.value !== chosen.value || values.includes(option.value)) option.remove();
  const kept = chosen.value;
  for (const [i, { topic, partition }] of partitions.entries()) {
    chosen.append(element("option", { value: values[i] }, `${topic}/${partition}`));
  }
  chosen.value = kept;
}

function remember({ since, until: end, seconds }) {
  const names = Object.keys(seconds);
  for (let i = 0; i < end - since; i++) {
    history.set(since + i, Object.fromEntries(names.map((name) => [name, seconds[name][i]])));
  }
  until = end;
  for (const second of history.keys()) if (second < until - SECONDS) history.delete(second);
}

function markDrifts(events) {
  for (const { event, noted } of events) {
    const row = history.get(Math.floor(noted));
    if (row && event === "drift") row.drift = true;
  }
}

function showNumbers(news) {
  const from = Math.max(until - SECONDS, Math.min(until - LEAST_SECONDS, ...busySeconds()));
  const rows = Array.from({ length: until - from }, (_, i) => history.get(from + i));
  const known = rows.filter(Boolean);
  const sum = (name, some = known) => some.reduce((before, row) => before + row[name], 0);
  const last = rows.slice(-RECENT).filter(Boolean);
  const rate = ["scored", "rejected", "replayed"].reduce((before, name) => before + sum(name, last), 0) / Math.max(1, last.length);
  const lag = known.at(-1)?.lag ?? null;
  const usual = middle(last.map((row) => row.median).filter((value) => value !== null));
  const mine = partitionsChosen(news.partitions);
  setText(byId("rate"), rate < 10 ? String(Number(rate.toFixed(1))) : count(rate));
  setText(byId("lag"), count(lag));
  setText(byId("anomaly-count"), count(sum("anomalies")));
  setText(byId("rejected-count"), count(sum("rejected")));
  setText(byId("usual"), nats(usual));
  setText(byId("nodes"), count(total(mine)));
  setText(byId("nodes-note"), mine.length === 1 ? "nodes" : `nodes, ${mine.length} partitions`);
  charts.throughput.show(rows, from, `Throughput: ${count(rate)} records a second`);
  charts.lag.show(rows, from, `Lag: ${count(lag)} records`);
  charts.likelihood.show(rows, from, `Log-likelihood: median ${nats(usual)} nats`);
}

/** The seconds in which something was done: a worker's idle start is not worth a picture. */
function* busySeconds() {
  for (const [second, row] of history) if (row.scored + row.rejected + row.replayed > 0) yield second;
}

const nodes = (partition) => Object.values(partition.nodes).reduce((sum, some) => sum + some, 0);
const middle = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

function partitionsChosen(partitions) {
  const only = place();
  return only ? partitions.filter((p) => p.topic === only.topic && p.partition === only.partition) : partitions;
}

/** Draw the structure at first, and again by itself until somebody explores it. */
async function lookAtStructure(partitions) {
  const mine = partitionsChosen(partitions).filter((partition) => nodes(partition) > 0);
  const isNew = learned(mine) > drawn.learned;
  byId("update").classList.toggle("ready", isNew && network.wasTouched === true);
  const isDue = Date.now() / 1000 - drawn.at > STRUCTURE_SECONDS && total(mine) <= MOST_AGAIN;
  if (mine.length && (!network.root || (isNew && isDue && !network.wasTouched))) await drawStructure(mine);
  if (!network.root) setText(byId("network-note"), "nothing learned yet");
}

const learned = (partitions) => partitions.reduce((sum, partition) => sum + partition.records, 0);
const total = (partitions) => partitions.reduce((sum, partition) => sum + nodes(partition), 0);

async function drawStructure(mine) {
  const asked = chosen.value;
  const isNewer = network.root !== null && mine.length === drawn.partitions;
  const few = mine.length === 1 || total(mine) <= MOST_AT_FIRST;
  const roots = (await Promise.all(mine.map((partition) => (few ? read(partition) : later(partition))))).filter(Boolean);
  if (asked !== chosen.value || !roots.length) return;
  network.show(roots.length === 1 ? roots[0] : forest(roots, "this worker"), isNewer);
  drawn = { learned: learned(mine), at: Date.now() / 1000, partitions: mine.length };
  setText(byId("network-note"), `${count(total(mine))} nodes after ${count(learned(mine))} records`);
}

async function read({ topic, partition }) {
  const found = await ask("model", { topic, partition }).catch(showLoss);
  return found && Object.assign(readNetwork(found), { title: `${topic}/${partition}` });
}

/** A network that is read when it is opened. */
function later(found) {
  const title = `${found.topic}/${found.partition}`;
  return unread(title, nodes(found), () => read(found));
}

async function repeat() {
  try {
    if (!document.hidden) await look();
  } finally {
    setTimeout(repeat, POLL_MILLISECONDS);
  }
}

chosen.addEventListener("change", () => {
  forget();
  look();
});
byId("update").addEventListener("click", async () => {
  const news = await ask("live", { since: until }).catch(showLoss);
  const mine = partitionsChosen(news?.partitions ?? []).filter((partition) => nodes(partition) > 0);
  if (mine.length) await drawStructure(mine);
});
byId("expand").addEventListener("click", () => network.root && network.expand());
byId("collapse").addEventListener("click", () => network.root && network.collapse());
byId("fit").addEventListener("click", () => network.root && network.fit());
byId("closer").addEventListener("click", () => network.zoomBy(1.4));
byId("farther").addEventListener("click", () => network.zoomBy(1 / 1.4));

forget();
repeat();
