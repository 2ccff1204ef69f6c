/** Numbers about stores, and what happened to them in the course of trials. */

import { type Context, targetName } from "../context";
import { fold, h, labelled, section, tableHead } from "../dom";
import * as format from "../format";
import type { EventView, FactView } from "../view";

function factsTable(facts: readonly FactView[]): HTMLElement {
  const row = (fact: FactView): HTMLElement =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, h("div", {}, targetName(fact.target), h("span", { class: "sub" }, fact.workload))),
      labelled("Number", fact.label),
      labelled("Value", fact.shown),
      labelled("Says", fact.source),
    );
  return h("table", { class: "cards" }, tableHead(["Store and workload", "Number", "Value", "Says"]), h("tbody", {}, facts.map(row)));
}

function eventsTable(events: readonly EventView[]): HTMLElement {
  const row = (event: EventView): HTMLElement =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, h("div", {}, targetName(event.target), h("span", { class: "sub" }, `${event.workload}, block ${event.block + 1}`))),
      labelled("When", `${format.threeDigits(event.at_s)} s${event.phase === null ? "" : ` of ${event.phase}`}`),
      labelled("What", `${event.subject} ${event.what}`.trim()),
    );
  return h("table", { class: "cards" }, tableHead(["Store and workload", "When", "What"]), h("tbody", {}, events.map(row)));
}

/** Both tables; null when there is neither a number nor an event. */
export function facts(context: Context): HTMLElement | null {
  const { facts: numbers = [], events = [] } = context.view;
  if (numbers.length === 0 && events.length === 0) return null;
  return section(
    "facts",
    "Numbers about stores, and events",
    numbers.length === 0 ? null : factsTable(numbers),
    events.length === 0 ? null : fold(format.plural(events.length, "event"), eventsTable(events)),
  );
}
