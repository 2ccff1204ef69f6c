/** The top of the live page: run, progress and failures. */

import { chip, h, prose, section } from "../dom";
import * as format from "../format";
import { clock } from "./charts";
import { parseView, ViewError } from "../parse";
import type { View } from "../view";
import { verdict } from "../validity";
import { progress, type State, type Store, type Usage } from "./store";

/** The fetched report: its URL and its view; the view is null if this page cannot read it. */
export interface Kept {
  url: string;
  view: View | null;
}

/** State of the connection; `crowded` if the program already serves its maximum number of readers. */
export type Link = "connecting" | "connected" | "crowded" | "lost" | "closed";

/** State of a run with a complete record but no report yet. */
export const REPORTING = "writing the report";

function standing(state: State | null, link: Link): HTMLElement {
  if (state?.ended) {
    if (link !== "closed") return chip("plain", REPORTING);
    const { status } = state.ended;
    // Complete does not mean valid.
    return chip(status === "complete" ? "plain" : "warn", status);
  }
  if (link === "crowded") return chip("warn", "too many readers");
  if (link === "lost") return chip("warn", "connection lost");
  return state === null ? chip("plain", "connecting") : chip("good", "running");
}

/** The current activity in one line. */
export function words(state: State): string {
  const { now } = state;
  if (state.ended) return `The run is over: ${state.ended.because}.`;
  if (now === null) return state.trials === 0 ? "Checking the stores." : "Preparing the next trial.";
  const at = `${now.target}, ${now.profile}, ${now.load}`;
  const phase = now.phase === null ? "being prepared" : `phase ${now.phase}`;
  const stage = now.stage === null ? "" : `, stage ${now.stage + 1}`;
  return `${at}: ${phase}${stage}`;
}

function facts(state: State, store: Store, clock_s: number): HTMLElement {
  const { done, left_s } = progress(store, clock_s);
  const { now } = state;
  const end_s = Math.max(store.points[store.points.length - 1]?.at_s ?? 0, store.usage[store.usage.length - 1]?.at_s ?? 0);
  const runs_s = state.ended ? end_s : clock_s + store.offset_s;
  const entries: [string, string | null][] = [
    ["Store", now?.target ?? null],
    ["Block", now === null ? null : String(now.block + 1)],
    ["Phase", now?.phase ?? null],
    ["Stage", now === null || now.stage === null ? null : String(now.stage + 1)],
    ["Trials", format.count(state.trials)],
    ["Done", `${Math.floor(done * 100)} %`],
    ["Left", left_s === null ? null : format.span(Math.ceil(left_s))],
    ["Runs for", clock(runs_s)],
    ["Began", format.when(state.started_unix_ms)],
    ["Run", state.run],
  ];
  return h(
    "dl",
    { class: "facts" },
    entries.flatMap(([name, value]) => (value === null ? [] : [h("div", {}, h("dt", {}, name), h("dd", {}, value))])),
  );
}

function bar(store: Store, clock_s: number): HTMLElement {
  const { done } = progress(store, clock_s);
  return h("progress", { class: "done", max: 1, value: done.toFixed(4), "aria-label": "share of the run that is done" });
}

/** The view in the text of a report; null if this page cannot read it. */
export function viewOf(page: string): View | null {
  const data = new DOMParser().parseFromString(page, "text/html").getElementById("cachedyno-view");
  try {
    return data === null ? null : parseView(data.textContent ?? "");
  } catch (error) {
    if (error instanceof ViewError) return null;
    throw error;
  }
}

/** Link to the report and its validity after the run; `kept` is null before it is fetched. */
export function report(state: State | null, kept: Kept | null, link: Link): HTMLElement | null {
  if (!state?.ended) return null;
  if (kept !== null) {
    const found = h("p", { class: "line" }, h("a", { href: kept.url, id: "report" }, "Open the report"), ", with intervals for all results.");
    return h("div", {}, kept.view === null ? null : verdict(kept.view), found);
  }
  const missed = link === "closed" ? `The program has exited. To write its report again, run \`cachedyno report ${state.run}\` there.` : "The report is being written.";
  const text = state.ended.report === false ? "The report could not be written; the result is in the program's output." : missed;
  return h("p", { class: "line" }, prose(text));
}

/** Why there is no new data. */
const WHY: Partial<Record<Link, string>> = {
  crowded: "The program already serves its maximum number of readers. This page retries and shows the run once another reader has left.",
  lost: "The program does not answer; this page keeps trying. If it has exited, its record shows how the run ended.",
};

/** Title, state and progress. */
export function head(store: Store, link: Link, kept: Kept | null, clock_s: number): HTMLElement {
  const { state } = store;
  const title = h("h1", { id: "title" }, state?.title ?? "A run in progress");
  const why = state?.ended ? undefined : WHY[link];
  return h(
    "section",
    { id: "now", "aria-labelledby": "title" },
    title,
    state === null || state.question === "" ? null : h("p", { class: "question" }, state.question),
    h("p", { class: "line live-standing", role: "status" }, standing(state, link), " ", state === null ? null : words(state)),
    store.problem === "" ? null : h("p", { class: "line" }, store.problem),
    why === undefined ? null : h("p", { class: "line" }, why),
    report(state, kept, link),
    state === null ? null : [bar(store, clock_s), facts(state, store, clock_s)],
  );
}

function latest(usage: Usage): [string, string][] {
  const perSecond = (n: number): string => `${format.rate(n)}/s`;
  const entries: [string, number | undefined, (n: number) => string][] = [
    ["Connections", usage.connections, format.count],
    ["Evicted", usage.evicted_per_s, perSecond],
    ["Expired", usage.expired_per_s, perSecond],
    ["Received", usage.received_per_s, (n) => `${format.bytes(n)}/s`],
    ["Sent", usage.sent_per_s, (n) => `${format.bytes(n)}/s`],
    ["Swapped out", usage.swapped_bytes === 0 ? undefined : usage.swapped_bytes, format.bytes],
    ["Generator waits for a CPU", usage.generator_waiting, (n) => `${format.percent(n)} of the time, sum of all threads`],
  ];
  return entries.flatMap(([name, value, print]) => (value === undefined ? [] : [[name, print(value)] as [string, string]]));
}

/** The store's latest statistics; null before the first. */
export function store(all: Store): HTMLElement | null {
  const usage = all.usage[all.usage.length - 1];
  if (usage === undefined) return null;
  const entries = latest(usage).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
  return section("store", `${usage.target} at ${clock(usage.at_s)}`, h("dl", { class: "facts" }, entries));
}

/** Checked stores and failed trials. */
export function rest(state: State): HTMLElement[] {
  const targets = state.targets.map((t) =>
    h("li", {}, h("span", { class: "target", "data-target": t.name }, t.name), " ", t.version ?? `not run: ${t.unavailable ?? ""}`),
  );
  const failed = state.failed.map((f) => h("li", {}, `${f.cell} in block ${f.block + 1}: `, prose(f.message)));
  const warnings = state.warnings.map((text) => h("li", {}, prose(text)));
  return [
    targets.length === 0 ? null : section("stores", "Stores", h("ul", { class: "plain" }, targets)),
    failed.length === 0 ? null : section("failed", "Trials that failed", h("ul", {}, failed)),
    warnings.length === 0 ? null : section("warnings", "Warnings", h("ul", {}, warnings)),
  ].filter((part) => part !== null);
}
