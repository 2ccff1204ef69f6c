/** What stores sustain: highest rates, times at shares of the knee, and every stage. */

import { byProfile, rateOf, timeOf } from "../charts/ramp";
import { type Context, targetName } from "../context";
import { cards, chip, type Column, h, none, scrollBox, section, sub, tableHead } from "../dom";
import * as format from "../format";
import { validityMark } from "../validity";
import { ALL, type RampStage, type RampView, type Value } from "../view";

const OUTCOMES: Record<string, string> = {
  "never-missed": "at least",
  generator: "at least: generator's limit",
  "never-held": "no stage held",
  broken: "broke",
};

function value(of: Value | undefined, print: (n: number) => string): HTMLElement {
  if (of === undefined) return none();
  const ends = of.hi === null ? "" : format.interval(of, print);
  return h("span", {}, of.at_least === true ? `≥ ${print(of.center)}` : print(of.center), ends === "" ? null : sub(ends));
}

const perSecond = (n: number): string => `${format.rateShort(n)}/s`;

function shareColumns(ramps: readonly RampView[]): number[] {
  return [...new Set(ramps.flatMap((ramp) => ramp.at.map((point) => point.share)))].sort((a, b) => a - b);
}

/** What is known of a knee: its lower end where no stage was too much. */
function known(ramp: RampView, knee: Value | undefined): Value | undefined {
  const isBound = ramp.outcome === "never-missed" || ramp.outcome === "generator";
  return knee === undefined || !isBound ? knee : { center: knee.lo ?? knee.center, lo: null, hi: null };
}

function summary(ramps: readonly RampView[]): HTMLElement {
  const at = (ramp: RampView, share: number) => ramp.at.find((point) => point.share === share)?.metrics;
  const last = (ramp: RampView) => ramp.at[ramp.at.length - 1]?.metrics ?? {};
  const limit = ramps.find((ramp) => ramp.limit_ns !== null)?.limit_ns ?? null;
  const within: Column<RampView>[] = limit === null ? [] : [[`p99 below ${format.timeShort(limit)}`, ({ metrics }) => value(metrics["within_limit_per_s"], perSecond)]];
  const columns: Column<RampView>[] = [
    ["Store", (ramp) => [targetName(ramp.target), sub(format.plural(ramp.blocks, "block"))]],
    [
      "Knee",
      (ramp) => {
        const doubt = OUTCOMES[ramp.outcome];
        return [value(known(ramp, ramp.metrics["knee_per_s"]), perSecond), doubt === undefined ? null : chip("doubt", doubt)];
      },
    ],
    ...some(ramps, "Reached", ({ metrics }) => metrics["reached_per_s"], perSecond),
    ...within,
    ...some(ramps, "Server CPU at the knee", ({ metrics }) => metrics["server_cpus"], format.percent),
    ...shareColumns(ramps).flatMap((share) => some(ramps, `p99 at ${format.percent(share)}`, (ramp) => at(ramp, share)?.["ns_p99"], format.time)),
    ...some(ramps, "CPU/op server", (ramp) => last(ramp)["server_cpu_ns_per_op"], format.time),
    ...some(ramps, "CPU/op generator", (ramp) => last(ramp)["generator_cpu_ns_per_op"], format.time),
  ];
  return cards(columns, [ramps], "ramps");
}

/** A column of values; none where no ramp has one. */
function some(ramps: readonly RampView[], name: string, read: (ramp: RampView) => Value | undefined, print: (n: number) => string): Column<RampView>[] {
  return ramps.some((ramp) => read(ramp) !== undefined) ? [[name, (ramp) => value(read(ramp), print)]] : [];
}

/** What the columns mean that are there. */
function hint(ramps: readonly RampView[]): string {
  const points = ramps.flatMap((ramp) => ramp.at);
  return [
    "The knee is the rate on the way up below which a store answered all that it was asked for, and above which it did not; its interval reaches up to the stage above it.",
    "The first fifth of a stage, in which the store settles, is left out.",
    ramps.some((ramp) => "server_cpus" in ramp.metrics) ? "CPU is a share of one CPU." : "",
    points.length > 0 ? "p99 stands at shares of each store's own knee, interpolated between the two nearest stages; CPU/op at the knee." : "",
    ramps.some((ramp) => ramp.in_pairs)
      ? "Of a pair the set is always sent first: among the stages, set and get differ by their place as well, and say nothing of which costs more."
      : "",
  ].filter((text) => text !== "").join(" ");
}

/** The times of each operation at each place in a pair; null without controls. */
function places(ramps: readonly RampView[]): HTMLElement | null {
  const rows = ramps.flatMap((ramp) => (ramp.place?.operations ?? []).map((operation): [RampView, string] => [ramp, operation]));
  if (rows.length === 0) return null;
  const times = ["p50", "p99"].flatMap((percentile) =>
    PLACES.map(([place, words]): Column<[RampView, string]> => [
      `${percentile} ${words}`,
      ([ramp, operation]) => value(ramp.place?.metrics[`${operation}.${place}.ns_${percentile}`], format.time),
    ]),
  );
  const told = ramps.flatMap((ramp) => (ramp.place === undefined ? [] : [h("li", {}, ramp.place.sentence)]));
  return h(
    "div",
    { class: "places" },
    h("h3", {}, "Place in a pair, apart from the operation"),
    h("ul", { class: "prose" }, told),
    cards([["Store", ([ramp, operation]) => [targetName(ramp.target), sub(operation)]], ...times], [rows]),
  );
}

const PLACES: readonly (readonly [string, string])[] = [
  ["first", "first"],
  ["second", "second"],
  ["apart", "by itself"],
];

/** What a stage of the way up is on the way down; undefined where there is none. */
export function downOf(ramp: RampView, stage: RampStage): RampStage | undefined {
  const planned = (s: RampStage): number => s.metrics["planned_per_s"]?.center ?? s.clients;
  return ramp.stages.find((s) => s.way === "down" && Math.abs(planned(s) / planned(stage) - 1) < 0.01);
}

function stageRow(ramp: RampView, stage: RampStage, operations: readonly string[], withDown: boolean): HTMLElement {
  const counts = stage.operations[ALL]?.counts;
  const all = counts === undefined ? 0 : counts.ok + counts.miss + counts.error + counts.wrong + counts.stale + stage.unsent;
  const share = (n: number | undefined): string => (n === undefined || n === 0 || all === 0 ? "0" : format.percent(n / all));
  const time = (of: RampStage | undefined, operation: string, percentile: string): string => {
    const found = of && timeOf(ramp, of, operation, percentile);
    return found === undefined ? format.NONE : format.time(found.center);
  };
  const used = (name: string): string => {
    const found = stage.metrics[name];
    return found === undefined ? format.NONE : format.percent(found.center);
  };
  const isClosed = ramp.times === "service";
  const asked = isClosed ? stage.clients : (rateOf(ramp, stage)?.center ?? Number.NaN);
  const number = (text: string): HTMLElement => h("td", { class: "number" }, text);
  const held = stage.held === stage.blocks ? "held" : stage.held === 0 ? "too much" : `held in ${stage.held} of ${stage.blocks}`;
  return h(
    "tr",
    { class: stage.held === stage.blocks ? undefined : "missed" },
    h("th", { scope: "row", class: "number" }, isClosed ? format.count(asked) : format.rate(asked)),
    number(format.rate(stage.metrics["rate_per_s"]?.center ?? Number.NaN)),
    h("td", {}, held),
    number(time(stage, ALL, "p50")),
    number(time(stage, ALL, "p99")),
    operations.map((operation) => number(time(stage, operation, "p99"))),
    withDown ? number(time(downOf(ramp, stage), ALL, "p99")) : null,
    number(share((counts?.error ?? 0) + stage.unsent)),
    number(share(counts?.miss)),
    number(used("server_cpus")),
    number(used("generator_cpus")),
  );
}

function stages(ramp: RampView, title: string): HTMLElement {
  const names = new Set(ramp.stages.flatMap((stage) => Object.keys(stage.operations)));
  const operations = [...names].filter((name) => name !== ALL).sort().reverse();
  const withDown = ramp.stages.some((stage) => stage.way === "down");
  const columns = [
    ramp.times === "service" ? "clients" : "asked/s",
    "answered/s",
    "",
    "p50",
    "p99",
    ...operations.map((operation) => `p99 ${operation}`),
    ...(withDown ? ["p99 way down"] : []),
    "failed",
    "missed",
    "server CPU",
    "generator CPU",
  ];
  const rows = ramp.stages.filter((stage) => stage.way === "up").map((stage) => stageRow(ramp, stage, operations, withDown));
  const table = h("table", { class: "stages" }, tableHead(columns), h("tbody", {}, rows));
  return h(
    "details",
    { class: "group" },
    h("summary", {}, h("span", { class: "group-name" }, targetName(ramp.target)), sub(title)),
    h("p", { class: "hint" }, format.load(ramp.load)),
    scrollBox(`Stages of ${ramp.target}`, table),
  );
}

/** The tables of each profile; null where no load was raised in stages. */
export function ramps(context: Context): HTMLElement | null {
  const all = context.view.ramps ?? [];
  if (all.length === 0) return null;
  const profiles = byProfile(all);
  const parts = profiles.flatMap(({ name, value: own }) => {
    const heading = profiles.length > 1 ? name : "What stores sustain";
    return [
      h("h3", {}, heading, validityMark(context.view)),
      summary(own),
      places(own),
      h("h3", {}, profiles.length > 1 ? `Stages, ${name}` : "Stages", validityMark(context.view)),
      own.map((ramp) => stages(ramp, format.plural(ramp.stages.length, "stage"))),
    ];
  });
  return section(
    "ramps",
    "Ramps",
    h("p", { class: "hint" }, hint(all)),
    parts.flat(),
  );
}
