/** Cost by size, on logarithmic axes: a cost proportional to the size is a line of slope 1. */

import type { SeriesOption } from "echarts";
import { type Context, paint, targetName } from "../context";
import { cards, h } from "../dom";
import * as format from "../format";
import { loadKey } from "../groups";
import type { GrowthPoint, GrowthView } from "../view";
import { timeAxis, valuesAxis } from "./axes";
import { axisTip, type Drawing, entries, items, type LegendEntry, line, mount, tip, zoom } from "./base";
import { type Choice, figure, selector } from "./figure";
import { intervalBars, type LogPoint, logPoint } from "./logpoints";

/** Names of the sizes. */
const NAMES: Record<GrowthView["grows"], string> = { records: "records", records_of_tag: "records of a tag" };

/** The curves of one profile, load and operation, one per target. */
interface Chosen {
  curves: GrowthView[];
  grows: GrowthView["grows"];
}

/** The points that can be drawn, smallest size first; without an interval both ends are the centre. */
export function growthPoints(curve: GrowthView): LogPoint[] {
  return curve.points
    .filter((point) => sizeOf(point, curve.grows) > 0 && point.cost.center > 0)
    .map((point) => logPoint(sizeOf(point, curve.grows), point.cost));
}

/** Description of a slope: `grows in proportion to the records`. */
export function words(curve: GrowthView): string {
  const what = NAMES[curve.grows];
  const links: Record<string, string> = {
    "grows slower": `grows slower than the ${what}`,
    "grows in proportion": `grows in proportion to the ${what}`,
    "grows faster": `grows faster than the ${what}`,
    "does not grow": `does not grow with the ${what}`,
    shrinks: `shrinks as the ${what} grow`,
  };
  return links[curve.verdict] ?? curve.verdict;
}

/** A slope with its interval: `0.98 (0.95 to 1.01)`. */
export function slopeText(curve: GrowthView): string {
  if (curve.slope === null) return format.NONE;
  const two = (n: number): string => {
    if (Math.abs(n) > format.BOUNDED) return n > 0 ? `>${format.BOUNDED}` : `<-${format.BOUNDED}`;
    // A slope that rounds to 0 has no sign.
    return Math.abs(n) >= 10 ? n.toFixed(0) : (Math.round(n * 100) / 100 + 0).toFixed(2);
  };
  const { center, lo, hi } = curve.slope;
  return lo === null || hi === null ? two(center) : `${two(center)} (${two(lo)} to ${two(hi)})`;
}

/** The size that grows. */
function sizeOf(point: GrowthPoint, grows: GrowthView["grows"]): number {
  return point[grows] ?? point.records;
}

function pointOf(curve: GrowthView, x: number): GrowthPoint | undefined {
  return curve.points.find((point) => Math.abs(Math.log10(sizeOf(point, curve.grows)) - x) < 1e-6);
}

function growthTip(params: unknown, { curves, grows }: Chosen, legend: readonly LegendEntry[]): HTMLElement {
  const shown = items<{ seriesName: string; seriesType: string; value: LogPoint }>(params).filter((item) => item.seriesType === "line");
  const x = shown[0]?.value[0] ?? 0;
  const lines = shown.flatMap(({ seriesName }) => {
    const point = curves.filter((c) => c.target === seriesName).map((c) => pointOf(c, x))[0];
    if (point === undefined) return [];
    const ends = format.interval(point.cost, format.time);
    const value = `${format.time(point.cost.center)}${ends === "" ? "" : ` (${ends})`}`;
    return [{ name: seriesName, look: legend.find(({ name }) => name === seriesName)?.look, value }];
  });
  const other = pointOf(curves.find((c) => pointOf(c, x) !== undefined) as GrowthView, x);
  const ofTag = other?.records_of_tag;
  const foot = other === undefined || ofTag === undefined ? "" : `${format.meanCount(other.records)} records, ${format.meanCount(ofTag)} of a tag`;
  return tip(`${format.meanCount(10 ** x)} ${NAMES[grows]}`, lines, foot);
}

function axes(all: LogPoint[], grows: GrowthView["grows"]): Pick<Drawing["option"], "xAxis" | "yAxis"> {
  return {
    xAxis: valuesAxis(all.map(([x]) => x), NAMES[grows], format.meanCount),
    yAxis: timeAxis(all.flatMap(([, , lo, hi]) => [lo, hi]), "mean service time"),
  };
}

function drawing(context: Context, chosen: Chosen): Drawing {
  const drawn = chosen.curves.map((curve) => ({ curve, at: growthPoints(curve) })).filter(({ at }) => at.length > 0);
  const legend = entries(context.view, drawn.map(({ curve }) => curve.target));
  const series = drawn.flatMap(({ at }, i): SeriesOption[] => {
    const entry = legend[i] as LegendEntry;
    return [line(entry, { data: at, encode: { x: 0, y: 1 }, symbolSize: 9 }), intervalBars(entry, at)];
  });
  return {
    legend,
    label: `Lines of mean service time by ${NAMES[chosen.grows]} for ${format.list(legend.map((entry) => entry.name))}; the same numbers are in the table below.`,
    option: {
      grid: { left: 8, right: 20, top: 28, bottom: 30, containLabel: true },
      tooltip: axisTip((params) => growthTip(params, chosen, legend), true),
      dataZoom: [zoom("xAxisIndex"), zoom("yAxisIndex")],
      ...axes(drawn.flatMap(({ at }) => at), chosen.grows),
      series,
    },
  };
}

/** One line per target: its cost at every size, the slope and its meaning. */
export function table({ curves, grows }: Chosen): HTMLTableElement {
  const costs = (curve: GrowthView) =>
    curve.points.map((point) => {
      const ends = format.interval(point.cost, format.time);
      return h("div", { title: ends === "" ? undefined : ends }, `${format.meanCount(sizeOf(point, grows))}: `, h("span", { class: "nowrap" }, format.time(point.cost.center)));
    });
  return cards(
    [
      ["Store", ({ target }) => targetName(target)],
      [`Mean service time by ${NAMES[grows]}`, costs],
      ["Slope", (curve) => h("span", { class: "nowrap" }, slopeText(curve))],
      ["The cost", words],
    ],
    [curves],
  );
}

/** Choices by profile and load, and then by operation. */
function choices(all: readonly GrowthView[]): Choice<Choice<Chosen>[]>[] {
  const places = new Map<string, Map<string, GrowthView[]>>();
  for (const curve of all) {
    const place = `${curve.workload}|${loadKey(curve.load)}`;
    const operations = places.get(place) ?? new Map<string, GrowthView[]>();
    operations.set(curve.operation, [...(operations.get(curve.operation) ?? []), curve]);
    places.set(place, operations);
  }
  return [...places.values()].map((operations) => {
    const [first] = [...operations.values()][0] as [GrowthView];
    const value = [...operations].map(([operation, curves]): Choice<Chosen> => ({
      name: format.operationTitle(operation),
      value: { curves, grows: (curves[0] as GrowthView).grows },
    }));
    // Cleans come first: these profiles exist for them.
    value.sort((a, b) => Number(b.name === "clean") - Number(a.name === "clean"));
    return { name: `${first.workload} · ${format.load(first.load)}`, value };
  });
}

/** The chart of growth with its table; null if no profile measured several sizes. */
export function growth(context: Context): HTMLElement | null {
  const offered = choices(context.view.growth ?? []);
  if (offered.length === 0) return null;
  const under = h("div", { class: "growth-table" });
  const show = (): void => {
    under.replaceChildren(table(byOperation.value()));
    paint(context.view, under);
    chart.redraw();
  };
  const byPlace = selector("Load", offered, () => {
    byOperation.offer(byPlace.value());
    show();
  });
  const byOperation = selector("Operation", byPlace.value(), show);
  const chart = mount(() => drawing(context, byOperation.value()));
  under.replaceChildren(table(byOperation.value()));
  const built = figure(
    context,
    "chart-growth",
    "Cost by size",
    "Lower and flatter is better. The slope, with its 95 % interval, is the exponent by which the time grows: at 0 (a flat line) the time does not depend on the size; at 1 it is proportional: ten times the data takes ten times as long.",
    [byOperation.element, byPlace.element],
    chart,
  );
  built.append(under);
  return built;
}
