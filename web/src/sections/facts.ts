/** Numbers about stores, and what happened to them in the course of trials. */

import { type Context, targetName } from "../context";
import { cards, type Column, fold, h, section, sub } from "../dom";
import * as format from "../format";
import type { EventView, FactView } from "../view";

const FACTS: readonly Column<FactView>[] = [
  ["Store and workload", (fact) => [targetName(fact.target), sub(fact.workload)]],
  ["Number", (fact) => fact.label],
  ["Value", (fact) => fact.shown],
  ["Says", (fact) => fact.source],
];

const EVENTS: readonly Column<EventView>[] = [
  ["Store and workload", (event) => [targetName(event.target), sub(`${event.workload}, block ${event.block + 1}`)]],
  ["When", ({ at_s: at, phase }) => `${format.threeDigits(at)} s${phase === null ? "" : ` of ${phase}`}`],
  ["What", (event) => `${event.subject} ${event.what}`.trim()],
];

/** Both tables; null when there is neither a number nor an event. */
export function facts(context: Context): HTMLElement | null {
  const { facts: numbers = [], events = [] } = context.view;
  if (numbers.length === 0 && events.length === 0) return null;
  return section(
    "facts",
    "Numbers about stores, and events",
    numbers.length === 0 ? null : cards(FACTS, [numbers]),
    ...(events.length === 0 ? [] : [h("h3", {}, "Events"), fold(`Table of ${format.plural(events.length, "event")}`, cards(EVENTS, [events]))]),
  );
}
