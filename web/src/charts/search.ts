/** Probes of a search: latency and verdict at each rate, with the answer and the peak. */

import type { CustomSeriesOption, LineSeriesOption, SeriesOption } from "echarts";
import type { Context } from "../context";
import * as format from "../format";
import type { ProbeVerdict, ProbeView, SearchView } from "../searchview";
import * as theme from "../theme";
import { rateAxis, timeAxis } from "./axes";
import { type Drawing, filled, ink, type LegendEntry, mount, tip, zoom } from "./base";
import { figure } from "./figure";

type RenderItem = NonNullable<CustomSeriesOption["renderItem"]>;

/** Colour and mark of each verdict of a probe. */
const VERDICTS: Record<ProbeVerdict, [color: string, mark: theme.Mark]> = {
  holds: ["--good", "circle"],
  missed: ["--bad", "diamond"],
  undecided: ["--doubt", "triangle"],
  broke: ["--bad", "square"],
};

/** Probes with a rate and a latency, which the chart can show. */
export function drawnProbes(search: SearchView): ProbeView[] {
  return search.probes.filter((p) => p.rate_per_s !== null && typeof p.response_ns_p99 === "number" && p.response_ns_p99 > 0 && p.verdict !== null);
}

function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function points(all: readonly ProbeView[], probes: readonly ProbeView[], entry: LegendEntry): LineSeriesOption {
  const data = probes.map((p): [number, number, number] => [p.rate_per_s as number, Math.log10(p.response_ns_p99 as number), all.indexOf(p)]);
  return {
    type: "line",
    name: entry.name,
    data,
    symbol: theme.symbol(entry.look),
    symbolSize: 9,
    showAllSymbol: true,
    itemStyle: filled(entry.look),
    lineStyle: { opacity: 0 },
    emphasis: { disabled: true },
  };
}

/** The answer as an upright line in its interval, and the peak as a dashed one. */
function answer(search: SearchView, [bottom, top]: [number, number]): CustomSeriesOption {
  const { muted } = ink();
  const good = color("--good");
  const renderItem: RenderItem = (_, api) => {
    const at = (x: number, y: number): [number, number] => api.coord([x, y]) as [number, number];
    const upright = (x: number, stroke: string, lineDash: number[] | undefined) => {
      const [x1, y1] = at(x, bottom);
      const [x2, y2] = at(x, top);
      return { type: "line" as const, shape: { x1, y1, x2, y2 }, style: { stroke, lineWidth: 1.5, ...(lineDash && { lineDash }) } };
    };
    const children = [];
    if (search.answer !== null) {
      const [from, low] = at(search.answer.lo ?? search.answer.center, bottom);
      const [to, high] = at(search.answer.hi ?? search.answer.center, top);
      const shape = { x: from, y: high, width: Math.max(1, to - from), height: low - high };
      children.push({ type: "rect" as const, shape, style: { fill: good, opacity: 0.14 } }, upright(search.answer.center, good, undefined));
    }
    if (search.peak_per_s !== null) children.push(upright(search.peak_per_s, muted, [5, 4]));
    return { type: "group", children };
  };
  return { type: "custom", renderItem, data: [[search.answer?.center ?? search.peak_per_s ?? 0, bottom]], silent: true, clip: true, z: 0, tooltip: { show: false } };
}

function probeTip(params: unknown, search: SearchView, legend: readonly LegendEntry[]): HTMLElement {
  const items = ((Array.isArray(params) ? params : [params]) as { seriesName: string; value: [number, number, number] }[]).filter((i) => i.seriesName !== "");
  const rate = items[0]?.value[0] ?? 0;
  const rows = items.flatMap(({ seriesName, value }) => {
    const probe = search.probes[value[2]];
    const entry = legend.find((e) => e.name === seriesName);
    if (probe === undefined || entry === undefined) return [];
    const over = probe.beyond.map((b) => format.percent(b.share)).join(", ");
    return [{ name: `probe ${search.by_block.length > 1 ? `${probe.block + 1}.` : ""}${probe.number}, ${seriesName}`, look: entry.look, value: `${format.time(10 ** value[1])}${over === "" ? "" : `, ${over} beyond`}` }];
  });
  return tip(`${format.count(rate)}/s`, rows);
}

/** Explanation of the vertical lines, if any. */
function drawnParts({ answer: found, peak_per_s: peak }: SearchView): string {
  return [
    found === null ? "" : "The vertical line is the answer with its interval.",
    peak === null ? "" : "The dashed line is the peak, ignoring the limits.",
  ].filter((text) => text !== "").join(" ");
}

function drawing(search: SearchView): Drawing {
  const probes = drawnProbes(search);
  const used = Object.entries(VERDICTS).filter(([verdict]) => probes.some((p) => p.verdict === verdict));
  const legend = used.map(([name, [variable, mark]]): LegendEntry => ({ name, look: { ...theme.plain(color(variable)), mark } }));
  const rates = rateAxis("requests/s");
  const times = timeAxis(probes.map((p) => Math.log10(p.response_ns_p99 as number)), "response time, 99 %");
  const series = used.map(([verdict], i): SeriesOption => points(search.probes, probes.filter((p) => p.verdict === verdict), legend[i] as LegendEntry));
  return {
    legend,
    label: "Points of response time by rate, one per probe; the same numbers are in the table below.",
    note: drawnParts(search),
    option: {
      grid: { left: 8, right: 24, top: 28, bottom: 30, containLabel: true },
      tooltip: {
        trigger: "axis",
        axisPointer: { type: "line", snap: true, label: { show: false } },
        formatter: (params) => probeTip(params, search, legend),
      },
      dataZoom: [zoom("xAxisIndex"), zoom("yAxisIndex")],
      xAxis: {
        ...rates,
        max: Math.max(search.peak_per_s ?? 0, search.answer?.hi ?? 0, ...probes.map((p) => p.rate_per_s ?? 0)) * 1.03,
        axisLabel: { ...rates.axisLabel, showMaxLabel: false },
      },
      yAxis: times,
      series: [answer(search, [times.min, times.max]), ...series],
    },
  };
}

/** The charts of searches, each with its probes. */
export function searchCurves(context: Context): HTMLElement[] {
  const all = (context.view.searches ?? []).filter((search) => drawnProbes(search).length > 0);
  return all.map((search, i) => {
    const [id, of] = all.length === 1 ? ["chart-search", ""] : [`chart-search-${i + 1}`, `, ${search.target}`];
    const help = "Each point is a probe at a rate. The store sustains the rate where points turn from passing to failing.";
    return figure(context, id, `Probes${of}`, help, [], mount(() => drawing(search)));
  });
}
