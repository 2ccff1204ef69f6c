/**
 * Shared by all charts: the used parts of ECharts, the common look, zoom buttons, a legend of
 * buttons, tooltips made of text nodes, and redrawing after changes of size or theme.
 */

import { CustomChart, LineChart } from "echarts/charts";
import { DataZoomInsideComponent, GridComponent, LegendPlainComponent, TooltipComponent } from "echarts/components";
import * as echarts from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import type { CustomSeriesOption, EChartsOption, LineSeriesOption } from "echarts";
import { h } from "../dom";
import * as theme from "../theme";
import type { View } from "../view";

echarts.use([
  CustomChart,
  LineChart,
  DataZoomInsideComponent,
  GridComponent,
  LegendPlainComponent,
  TooltipComponent,
  SVGRenderer,
]);

/** One entry of a legend: a series' name and how it is drawn. */
export interface LegendEntry {
  name: string;
  look: theme.Look;
}

/** Current content of a chart. */
export interface Drawing {
  option: EChartsOption;
  legend: LegendEntry[];
  /** Description for screen readers. */
  label: string;
  /** A line under the chart; empty for none. */
  note?: string;
  /** Required height in pixels, for stacked charts. */
  height?: number;
}

/** A chart on the page. */
export interface Chart {
  element: HTMLElement;
  /** Redraws after a selector changed. */
  redraw: () => void;
  /** Draws new data and keeps zoom and hover state. */
  refresh: () => void;
}

/** Colours of everything except data. */
export interface Ink {
  text: string;
  muted: string;
  line: string;
  ground: string;
}

/** The page's colours in the current theme. */
export function ink(): Ink {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string): string => style.getPropertyValue(name).trim();
  return { text: read("--text"), muted: read("--muted"), line: read("--line"), ground: read("--ground") };
}

/** A line of a tooltip: a name with its mark, and a value. */
export interface TipLine {
  name: string;
  look: theme.Look | undefined;
  value: string;
}

/** A tooltip's content: heading, lines and a footer. */
export function tip(title: string, lines: TipLine[], foot = ""): HTMLElement {
  const rows = lines.map(({ name, look, value }) => {
    const label = h("span", { class: "target" }, name);
    if (look !== undefined) theme.wear(label, look);
    return h("div", { class: "tip-row" }, label, h("span", { class: "number" }, value));
  });
  return h("div", { class: "tip" }, h("strong", {}, title), rows, foot === "" ? null : h("p", {}, foot));
}

/** Fill of a look's marks; ECharts' empty marks would be white on any background. */
export function filled({ color, hollow }: theme.Look): { color: string; borderColor?: string; borderWidth?: number } {
  return hollow ? { color: ink().ground, borderColor: color, borderWidth: 1.5 } : { color };
}

/** Points of a line with marks only at the ends of its segments, since more would hide the line. */
export function endMarked(data: readonly [number, number | null][], look: theme.Look): { value: [number, number | null]; symbol: string }[] {
  const isLast = (i: number): boolean => (data[i + 1]?.[1] ?? null) === null;
  return data.map((value, i) => ({ value, symbol: isLast(i) ? theme.symbol(look) : "none" }));
}

/** Arguments of a custom series renderer. */
export type RenderItem = NonNullable<CustomSeriesOption["renderItem"]>;

/** A line in its look with a mark at every point; `more` overrides the common options. */
export function line({ name, look }: LegendEntry, more: LineSeriesOption): LineSeriesOption {
  const { color, dash, hollow } = look;
  return {
    type: "line",
    name,
    symbol: theme.symbol(look),
    symbolSize: 8,
    showAllSymbol: true,
    itemStyle: filled(look),
    emphasis: { disabled: true },
    ...more,
    lineStyle: { color, width: hollow ? 1.5 : 2, type: dash.length === 0 ? "solid" : dash, ...more.lineStyle },
  };
}

/** Legend entries of targets, each in its look. */
export function entries(view: View, targets: readonly string[]): LegendEntry[] {
  const looks = theme.looks(view, theme.current());
  return targets.map((name) => ({ name, look: looks.get(name) as theme.Look }));
}

/** Argument of ECharts' tooltip formatter: one item or several. */
export function items<T>(params: unknown): T[] {
  return (Array.isArray(params) ? params : [params]) as T[];
}

/** A tooltip at a vertical line, which can snap to the nearest point. */
export function axisTip(formatter: (params: unknown) => HTMLElement, snap = false): NonNullable<EChartsOption["tooltip"]> {
  return { trigger: "axis", axisPointer: { type: "line", snap, label: { show: false } }, formatter };
}

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif';

/** Adds the common look to a chart's option. */
function dressed(option: EChartsOption, legend: LegendEntry[]): EChartsOption {
  const colours = ink();
  return {
    animation: false,
    textStyle: { fontFamily: FONT, fontSize: 12, color: colours.text },
    legend: { show: false, data: legend.map((entry) => entry.name) },
    ...option,
    tooltip: {
      confine: true,
      transitionDuration: 0,
      backgroundColor: colours.ground,
      borderColor: colours.line,
      textStyle: { color: colours.text, fontSize: 12, fontFamily: FONT },
      extraCssText: "box-shadow: 0 4px 16px rgb(0 0 0 / .16); border-radius: 6px; padding: 8px 10px;",
      ...(option.tooltip as object),
    },
  };
}

/** The common look of an axis; spread specific settings after it. */
export function axis(): { [key: string]: object } {
  const colours = ink();
  return {
    axisLine: { lineStyle: { color: colours.line } },
    axisTick: { lineStyle: { color: colours.line } },
    axisLabel: { color: colours.muted, fontSize: 12, hideOverlap: true },
    splitLine: { lineStyle: { color: colours.line, width: 1, opacity: 0.7 } },
    nameTextStyle: { color: colours.muted, fontSize: 12 },
  };
}

// Ctrl and the wheel zoom, dragging pans. Without Ctrl the wheel scrolls the page.
/** Zoom of one or several axes by wheel and drag. */
export function zoom(name: "xAxisIndex" | "yAxisIndex", axes: number | number[] = 0): object {
  return {
    type: "inside",
    [name]: axes,
    filterMode: "none",
    zoomOnMouseWheel: "ctrl",
    moveOnMouseWheel: false,
    moveOnMouseMove: true,
    preventDefaultMouseMove: false,
  };
}

interface ZoomRange {
  start: number;
  end: number;
}

function zoomBy(chart: echarts.ECharts, factor: number): void {
  const ranges = (chart.getOption()["dataZoom"] ?? []) as ZoomRange[];
  ranges.forEach((range, dataZoomIndex) => {
    const middle = (range.start + range.end) / 2;
    const half = factor === 0 ? 50 : Math.min(50, ((range.end - range.start) / 2) * factor);
    const start = Math.min(Math.max(0, (factor === 0 ? 50 : middle) - half), 100 - 2 * half);
    chart.dispatchAction({ type: "dataZoom", dataZoomIndex, start, end: start + 2 * half });
  });
}

function zoomButtons(chart: () => echarts.ECharts): HTMLElement {
  const button = (text: string, label: string, factor: number): HTMLElement => {
    const element = h("button", { type: "button", "aria-label": label, title: label }, text);
    element.addEventListener("click", () => zoomBy(chart(), factor));
    return element;
  };
  return h(
    "div",
    { class: "zoom", role: "group", "aria-label": "zoom" },
    button("+", "zoom in", 0.5),
    button("−", "zoom out", 2),
    button("Reset", "reset zoom", 0),
  );
}

function legendButton(entry: LegendEntry, hidden: Set<string>, changed: () => void): HTMLElement {
  const button = h("button", { type: "button", class: "target", "aria-pressed": String(!hidden.has(entry.name)) }, entry.name);
  theme.wear(button, entry.look);
  button.addEventListener("click", () => {
    if (!hidden.delete(entry.name)) hidden.add(entry.name);
    button.setAttribute("aria-pressed", String(!hidden.has(entry.name)));
    changed();
  });
  return button;
}

/**
 * Puts a chart on the page. At every change, `draw` returns its content for the available width in
 * pixels; `legendName` says what the legend's buttons show and hide.
 */
export function mount(draw: (width: number) => Drawing, legendName = "stores shown"): Chart {
  const canvas = h("div", { class: "canvas", role: "img" });
  const legend = h("div", { class: "legend", role: "group", "aria-label": legendName });
  const under = h("p", { class: "chart-note" });
  const hidden = new Set<string>();
  let chart: echarts.ECharts | undefined;
  const started = (): echarts.ECharts => (chart ??= echarts.init(canvas, null, { renderer: "svg" }));
  const select = (entries: LegendEntry[]): void => {
    const selected = Object.fromEntries(entries.map((entry) => [entry.name, !hidden.has(entry.name)]));
    started().setOption({ legend: { selected } });
  };
  let names = "";
  const show = (keep: boolean): void => {
    const { option, legend: entries, label, note = "", height } = draw(canvas.clientWidth);
    if (height !== undefined) {
      canvas.style.height = `${height}px`;
      started().resize();
    }
    started().setOption(dressed(option, entries), keep ? { replaceMerge: ["series"] } : { notMerge: true });
    select(entries);
    canvas.setAttribute("aria-label", label);
    under.textContent = note;
    // Keep the button that has the focus.
    const shown = JSON.stringify(entries);
    if (keep && shown === names) return;
    names = shown;
    legend.replaceChildren(...entries.map((entry) => legendButton(entry, hidden, () => select(entries))));
  };
  const redraw = (): void => show(false);
  new ResizeObserver(() => {
    if (canvas.clientWidth === 0) return;
    const { height } = chart === undefined ? {} : draw(canvas.clientWidth);
    // Redraw only if the height changes with the width, to keep the zoom.
    if (chart === undefined || (height !== undefined && canvas.style.height !== `${height}px`)) redraw();
    else chart.resize();
  }).observe(canvas);
  theme.onChange(() => {
    if (chart !== undefined) redraw();
  });
  addEventListener("beforeprint", () => chart?.resize({ width: 660 }));
  addEventListener("afterprint", () => chart?.resize({ width: "auto" }));
  const tools = h("div", { class: "chart-tools" }, legend, zoomButtons(started));
  return {
    element: h("div", { class: "chart" }, tools, canvas, under),
    redraw: () => chart && redraw(),
    refresh: () => chart && show(true),
  };
}
