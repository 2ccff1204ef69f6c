/** Events of stores as vertical lines in a chart over time, with labels that do not overlap. */

import type { CustomSeriesOption } from "echarts";
import * as format from "../format";
import type { EventView, Row } from "../view";
import { ink, type LegendEntry, type RenderItem } from "./base";

/** A vertical line and its label. */
export interface Happening {
  at_s: number;
  words: string;
}

/** A placed label in pixels: the line's position, and the label's start and row (0 is the top). */
export interface Placed {
  x: number;
  from: number;
  width: number;
  row: number;
}

/** Events of the same kind closer than this share of the shown time are merged. */
const SAME = 0.01;

/** Pixels: width of a wide character, height of a row, gap between line and label, and width of the axes. */
const [CHARACTER, ROW, GAP, AXES] = [7, 15, 4, 90] as const;

/** Width of a printed chart. */
const PAPER = 660;

/** Small, because there can be many labels. */
const FONT = "11px system-ui, -apple-system, \"Segoe UI\", Roboto, \"Liberation Sans\", sans-serif";

/** A function that leaves the host out of addresses if it is that of all. */
export function shortNames(names: readonly string[]): (name: string) => string {
  const host = (name: string): string => name.slice(0, Math.max(0, name.lastIndexOf(":")));
  const hosts = new Set(names.filter((name) => name !== "").map(host));
  const [common] = hosts;
  return (name) => (hosts.size === 1 && host(name) === common ? name.slice(host(name).length) : name);
}

/** Events of a row's store in one block of its phase, in order of time; they name the server if it is not always the same. */
export function happenings(events: readonly EventView[], row: Row, block: number, length_s: number): Happening[] {
  const phase = row.operation.split(".")[0];
  const own = events.filter((e) => e.target === row.target && e.workload === row.workload && e.phase === phase && e.block === block);
  const subjects = own.map((e) => e.subject);
  const isOne = new Set(subjects.filter((name) => name !== "")).size < 2;
  const short = isOne ? () => "" : shortNames(subjects);
  const found: { at_s: number; last_s: number; what: string; times: number }[] = [];
  for (const { at_s, what: happened, subject, in_place_of } of own.sort((a, b) => a.at_s - b.at_s)) {
    const replaced = in_place_of === undefined ? "" : ` in place of ${short(in_place_of)}`;
    const what = `${short(subject)} ${happened}${replaced}`.trim();
    const same = found.find((known) => known.what === what && at_s - known.last_s <= SAME * length_s);
    if (same === undefined) found.push({ at_s, last_s: at_s, what, times: 1 });
    else Object.assign(same, { last_s: at_s, times: same.times + 1 });
  }
  return found.map(({ at_s, what, times }) => ({ at_s, words: times === 1 ? what : `${what} ×${format.count(times)}` }));
}

/**
 * Places labels to the right of their lines, or to the left without room there, each in the first free row
 * below all labels that its line would cross.
 */
export function place(lines: readonly { x: number; words: string }[], left: number, right: number): Placed[] {
  const placed: Placed[] = [];
  const order = lines.map((_, i) => i).sort((a, b) => (lines[a]?.x ?? 0) - (lines[b]?.x ?? 0));
  for (const i of order) {
    const { x, words } = lines[i] as { x: number; words: string };
    const width = Math.min(words.length * CHARACTER, right - left);
    const before = x - GAP - width;
    const from = x + GAP + width <= right ? x + GAP : before >= left ? before : right - width;
    const taken = (row: number): boolean =>
      placed.some((other) => other.row === row && from < other.from + other.width + 2 * GAP && other.from < from + width + 2 * GAP);
    const crossed = placed.filter((other) => other.from - GAP <= x && x <= other.from + other.width + GAP);
    let row = Math.max(0, ...crossed.map((other) => other.row + 1));
    while (taken(row)) row += 1;
    placed[i] = { x, from, width, row };
  }
  return placed;
}

/** The events of one store's line. */
export interface Told {
  entry: LegendEntry;
  happened: Happening[];
}

/** Height of all labels above a chart of this width, pixels. */
export function room(all: readonly Told[], length_s: number, width: number): number {
  const drawn = Math.min(width, PAPER) - AXES;
  const lines = all.flatMap(({ happened }) => happened.map(({ at_s, words }) => ({ x: (at_s / length_s) * drawn, words })));
  return ROW * Math.max(0, ...place(lines, 0, drawn).map(({ row }) => row + 1));
}

/** Lines and labels of all stores, one series per store; the lines go on for `further` pixels below the chart. */
export function eventSeries(all: readonly Told[], further = 0): CustomSeriesOption[] {
  const lines = all.flatMap(({ happened }) => happened);
  const { text, ground } = ink();
  return all.map(({ entry, happened }, number) => {
    const first = all.slice(0, number).reduce((sum, other) => sum + other.happened.length, 0);
    const renderItem: RenderItem = (params, api) => {
      const { x: left, y: top, width, height } = params.coordSys as unknown as { x: number; y: number; width: number; height: number };
      const own = first + params.dataIndex;
      const at = lines.map(({ at_s, words }, i) => ({ i, words, x: (api.coord([at_s, 0]) as [number, number])[0] }));
      const shown = at.filter(({ x }) => x >= left && x <= left + width);
      const spot = place(shown, left, left + width)[shown.findIndex(({ i }) => i === own)];
      if (spot === undefined) return null;
      const y = spot.row * ROW + 2;
      // A label without room on either side covers its line, which then starts below it.
      const isOver = spot.from <= spot.x && spot.x <= spot.from + spot.width;
      const shape = { x1: spot.x, y1: isOver ? y + ROW : y + ROW / 2, x2: spot.x, y2: top + height + further };
      const style = { text: lines[own]?.words ?? "", x: spot.from, y, fill: text, font: FONT, lineHeight: ROW - 1, width: spot.width, overflow: "truncate" as const };
      return {
        type: "group",
        children: [
          { type: "line", shape, style: { stroke: entry.look.color, lineWidth: 1, lineDash: [4, 3] } },
          { type: "text", style: { ...style, backgroundColor: ground } },
        ],
      };
    };
    return {
      type: "custom",
      name: entry.name,
      id: `events of ${entry.name}`,
      data: happened.map(({ at_s }) => [at_s, 0]),
      encode: { x: 0, y: 1 },
      renderItem,
      clip: false,
      silent: true,
      tooltip: { show: false },
      z: 4,
    };
  });
}
