/** The time line of a fault in one block: rate, p99, failures, CPU use and role of each server on one time axis. */

import type { CustomSeriesOption, LineSeriesOption } from "echarts";
import type { Context } from "../context";
import * as format from "../format";
import type { OperationGroup } from "../groups";
import * as theme from "../theme";
import type { RoleSpan, ServerCourse, ServerRole } from "../serverview";
import type { Row } from "../view";
import { axis, axisTip, type Drawing, entries, ink, line, type LegendEntry, mount, type RenderItem, type TipLine } from "./base";
import { eventSeries, room, shortNames } from "./events";
import { type Choice, cellSelectors, figure, selector } from "./figure";
import { below, blockOf, drawn, evenly, HEIGHT, isDrawn, length, lines, type Over, RATE, stacked, timeTip, told } from "./overtime";

/** The share of a CPU below which servers are usually kept. */
const CPU_LIMIT = 0.8;

/** Pixels: height of a server's row of roles, and of what is above and below the rows. */
const [ROW, AROUND] = [24, 52] as const;

/** Narrowest span with its role as text, pixels for each character. */
const CHARACTER = 7;
/** Characters of a server's name before its row. */
const NAME = 7;

/** How a role is told and drawn: a colour of the palette, and whether it is filled. */
const ROLES: Record<ServerRole, { words: string; color: number; opacity: number; isDashed: boolean }> = {
  primary: { words: "primary", color: 2, opacity: 0.42, isDashed: false },
  replica: { words: "replica", color: 0, opacity: 0.16, isDashed: false },
  behind: { words: "not in sync", color: 4, opacity: 0.16, isDashed: true },
  sentinel: { words: "Sentinel", color: 6, opacity: 0.08, isDashed: false },
  gone: { words: "gone", color: 1, opacity: 0, isDashed: true },
  hangs: { words: "does not answer", color: 1, opacity: 0.2, isDashed: true },
  unknown: { words: "unknown", color: 6, opacity: 0, isDashed: true },
};

/** The servers of a row in a block; empty if the plan caused no fault. */
function servers(row: Row, block: number): ServerCourse[] {
  const at = row.charts?.by_block.findIndex((point) => point.block === block) ?? -1;
  return row.charts?.servers?.blocks[at] ?? [];
}

/** Roles of a server in words: `primary until 1.5 s, gone until 3.8 s, replica`. */
export function story(roles: readonly RoleSpan[]): string {
  const span = ({ role, to_s }: RoleSpan, i: number): string => {
    const { words } = ROLES[role];
    return i === roles.length - 1 ? `then ${words}` : `${words} until ${format.threeDigits(to_s)} s`;
  };
  return roles.length === 1 ? ROLES[(roles[0] as RoleSpan).role].words : roles.map(span).join(", ");
}

/** The quantity of CPU use. Its series are servers, not blocks. */
function cpu(all: readonly ServerCourse[], interval_s: number): Over {
  const series = evenly(interval_s, all.map((server) => server.cpu_share));
  const top = Math.max(0, ...series.flatMap((points) => points.map(([, value]) => value ?? 0)));
  return {
    id: "",
    title: "",
    hint: "",
    quantity: "CPU of each server",
    marks: top > 1.04 ? [0, CPU_LIMIT, Math.ceil(top)] : [0, 0.4, CPU_LIMIT, 1],
    series: () => series,
    short: format.percent,
    long: (text) => `${text} of a CPU`,
    tick: format.percent,
  };
}

/** The end of a name, which tells servers of one host apart, as far as there is room for it. */
function ending(name: string): string {
  return name.length > NAME ? `…${name.slice(1 - NAME)}` : name;
}

/** The rows of roles, one for each server from top to bottom. */
function bands(names: readonly string[]): Over {
  const base = axis();
  return {
    id: "",
    title: "",
    hint: "",
    quantity: "role of each server",
    series: () => [],
    short: format.count,
    long: (text) => text,
    tick: () => "",
    height: AROUND + ROW * names.length,
    scale: () => ({
      type: "category",
      data: names,
      inverse: true,
      nameLocation: "start",
      axisTick: { show: false },
      axisLabel: { ...base["axisLabel"], formatter: ending, interval: 0, width: 74, overflow: "truncate" },
      splitLine: { show: false },
    }),
  };
}

/** Spans of one server as rectangles with their role. */
function roleSeries(entry: LegendEntry, roles: readonly RoleSpan[], row: number, grid: number): CustomSeriesOption {
  const colours = theme.palette(theme.current());
  const { text } = ink();
  const renderItem: RenderItem = (params, api) => {
    const span = roles[params.dataIndex] as RoleSpan;
    const { x: left, width: whole } = params.coordSys as unknown as { x: number; width: number };
    const [from, middle] = api.coord([span.from_s, row]) as [number, number];
    const [to] = api.coord([span.to_s, row]) as [number, number];
    const x = Math.max(left, from);
    const width = Math.min(left + whole, to) - x;
    if (width <= 0) return null;
    const { words, color, opacity, isDashed } = ROLES[span.role];
    const stroke = colours[color] as string;
    const y = middle - ROW / 2 + 3;
    const height = ROW - 6;
    const isTold = width >= Math.min(words.length, 5) * CHARACTER + 6;
    const style = { text: words, x: x + 4, y: y + 4, fill: text, fontSize: 11, width: width - 8, overflow: "truncate" as const };
    return {
      type: "group",
      children: [
        { type: "rect", shape: { x, y, width, height }, style: { fill: stroke, opacity } },
        { type: "rect", shape: { x, y, width, height }, style: { fill: "none", stroke, lineWidth: 1, ...(isDashed ? { lineDash: [3, 3] } : {}) } },
        ...(isTold ? [{ type: "text" as const, style }] : []),
      ],
    };
  };
  return {
    type: "custom",
    name: entry.name,
    id: `roles of ${entry.name}`,
    xAxisIndex: grid,
    yAxisIndex: grid,
    data: roles.map(({ from_s }) => [from_s, row]),
    renderItem,
    silent: true,
    tooltip: { show: false },
  };
}

/** The line at the usual limit of CPU use. */
function limitLine(longest: number, grid: number): LineSeriesOption {
  return {
    type: "line",
    id: "limit of CPU use",
    xAxisIndex: grid,
    yAxisIndex: grid,
    data: [[0, CPU_LIMIT], [longest, CPU_LIMIT]],
    symbol: "none",
    silent: true,
    tooltip: { show: false },
    lineStyle: { color: ink().text, width: 1, type: [6, 4] },
  };
}

function drawing(context: Context, row: Row, block: number, width: number): Drawing {
  const own = servers(row, block);
  const short = own.length === 1 ? () => "server" : shortNames(own.map((server) => server.name));
  const looks = own.map(({ name }, i): LegendEntry => ({ name: short(name), look: theme.look(i + 1, theme.current(), false) }));
  const target = entries(context.view, [row.target]);
  const used = cpu(own, row.charts?.servers?.interval_s ?? 0);
  const hasCpu = used.series(row).some((points) => points.some(([, value]) => value !== null));
  const above = drawn(RATE, [row]);
  const overs = [...above, ...(hasCpu ? [used] : []), bands(looks.map(({ name }) => name))];
  const last = overs.length - 1;
  const longest = length(RATE, row);
  const events = told(RATE, context, [row], target, block);
  const top = room(events, longest, width);
  const ofCpu = used.series(row).map((data, i) => {
    const entry = looks[i] as LegendEntry;
    return line(entry, { id: `${above.length} ${entry.name}`, xAxisIndex: above.length, yAxisIndex: above.length, data, showSymbol: false, lineStyle: { width: 1.5 } });
  });
  const roleAt = (at_s: number): TipLine[] =>
    own.flatMap(({ roles }, i) => {
      const span = roles.find(({ from_s, to_s }) => from_s <= at_s && at_s <= to_s);
      return span === undefined ? [] : [{ ...(looks[i] as LegendEntry), value: ROLES[span.role].words }];
    });
  const changed = own.filter(({ roles }) => roles.length > 1).map(({ name, roles }) => `${short(name)}: ${story(roles)}.`);
  const noFailure = above.some((over) => over.quantity === "failed/s") ? [] : ["No request failed."];
  const isLimited = hasCpu ? ["Dashed line: 80 % of a CPU, the usual limit."] : [];
  return {
    legend: [...target, ...looks],
    label: `Time line of a fault on ${row.target}: ${format.list(overs.map((over) => over.quantity))}. ${changed.join(" ")}`,
    note: [...changed, ...noFailure, ...isLimited].join(" "),
    height: HEIGHT + top + below(overs),
    option: {
      ...stacked(overs, [row], top, longest),
      tooltip: axisTip((params) => timeTip(overs.slice(0, last), params, [...target, ...looks], roleAt)),
      series: [
        ...above.flatMap((over, grid) => lines(over, target[0] as LegendEntry, row, block, grid)),
        ...(hasCpu ? [...ofCpu, limitLine(longest, above.length)] : []),
        ...own.map(({ roles }, i) => roleSeries(looks[i] as LegendEntry, roles, i, last)),
        ...eventSeries(events, below(overs)),
      ],
    },
  };
}

function isFaulty(row: Row): boolean {
  return row.charts?.servers !== undefined && isDrawn(RATE, row);
}

/** Blocks of a row, the one in which clients were affected longest first. */
export function blockChoices(row: Row): Choice<number>[] {
  const worst = row.charts?.servers?.worst ?? 0;
  const blocks = RATE.series(row).map((_, i) => blockOf(row, i));
  const order = [worst, ...blocks.filter((block) => block !== worst)];
  return order.map((block) => ({ name: `block ${block + 1}${block === worst && order.length > 1 ? " (worst)" : ""}`, value: block }));
}

/** The chart of faults over time; null if the plan caused none. */
export function failovers(context: Context): HTMLElement | null {
  const has = (op: OperationGroup): boolean => op.rows.some(isFaulty);
  const targets = (): Choice<Row>[] => (selectors?.operation().rows ?? []).filter(isFaulty).map((row) => ({ name: row.target, value: row }));
  const changed = (): void => {
    byBlock.offer(blockChoices(byTarget.value()));
    chart.redraw();
  };
  const selectors = cellSelectors(context, has, () => {
    byTarget.offer(targets());
    changed();
  });
  if (selectors === null) return null;
  const byTarget = selector("Target", targets(), changed);
  const byBlock = selector("Block", blockChoices(byTarget.value()), () => chart.redraw());
  const chart = mount((width) => drawing(context, byTarget.value(), byBlock.value(), width));
  const hint = "What happened to clients and servers around a fault, on one time axis. Vertical lines: events.";
  return figure(context, "chart-failover", "Time line of a fault", hint, [...selectors.elements, byTarget.element, byBlock.element], chart);
}
