/** Renders the sections of the sheet block by block, without knowledge of studies, stores or metrics. */

import type { Cell, Column, Line, Part, Section, Table } from "../blocks";
import { type Context, targetName } from "../context";
import { cardTable, chip, type Child, fold, h, labelled, none, prose, scrollBox, section, sub } from "../dom";
import * as format from "../format";
import { sortable } from "../sort";
import { validityMark } from "../validity";
import { charts, readingHints } from "./charts";
import { claims } from "./claims";
import { conditions } from "./conditions";
import { noteMarks, notes } from "./notes";
import { ownWeights } from "./weights";

/** Builders of the parts that the page renders as components; charts are drawn once. */
type Parts = Record<Part, () => (Child | Child[])[]>;

function partsOf(context: Context): Parts {
  const [answer, ...others] = charts(context);
  return {
    answer: () => (answer === undefined ? [] : [...answer, ...readingHints()]),
    charts: () => others.flat(),
    weights: () => [ownWeights(context)],
    claims: () => claims(context),
    conditions: () => conditions(context),
    notes: () => notes(context),
  };
}

/** Tables with at least this many columns of numbers stay tables on a phone. */
const MANY_NUMBERS = 4;

const CHIPS: Partial<Record<NonNullable<Cell["tone"]>, "good" | "bad" | "doubt">> = { good: "good", bad: "bad", doubt: "doubt" };

function content(cell: Cell): Child[] {
  const tone = cell.tone === undefined ? undefined : CHIPS[cell.tone];
  if (cell.tone === "target") return [targetName(cell.text)];
  if (tone !== undefined && cell.text !== "") return [chip(tone, cell.text)];
  return cell.text === format.NONE || cell.text === "" ? [none()] : prose(cell.text);
}

function about(cell: Cell): HTMLElement | null {
  return cell.about === undefined ? null : sub(format.unbroken(cell.about));
}

/** A bar with a length proportional to the largest value of its group. */
function meter(cell: Cell, largest: number): HTMLElement {
  const share = largest > 0 ? Math.max(0, Math.min(1, (cell.sort ?? 0) / largest)) : 0;
  return h("span", { class: "meter", "aria-hidden": "true" }, h("span", { style: `width:${(share * 100).toFixed(1)}%` }));
}

function dataCell(context: Context, cell: Cell, column: Column, largest: number): HTMLTableCellElement {
  const built = labelled(column.title, content(cell), noteMarks(context.view, cell.notes ?? []), about(cell), column.has_meter ? meter(cell, largest) : null);
  if (column.is_number) built.classList.add("number");
  if (cell.sort !== undefined) built.dataset["sort"] = String(cell.sort);
  return built;
}

function row(context: Context, line: Line, columns: readonly Column[], largest: readonly number[]): HTMLTableRowElement {
  const [first, ...rest] = line.cells as [Cell, ...Cell[]];
  const target = line.cells.find((cell) => cell.tone === "target")?.text;
  const name = h("th", { scope: "row" }, h("div", {}, content(first), noteMarks(context.view, first.notes ?? []), about(first)));
  if (first.sort !== undefined) name.dataset["sort"] = String(first.sort);
  if (columns[0]?.is_number === true) name.classList.add("number");
  const cells = rest.map((cell, i) => dataCell(context, cell, columns[i + 1] as Column, largest[i + 1] ?? 0));
  return h("tr", { class: line.is_strong ? "best" : undefined, "data-target": target }, name, cells);
}

/** A group of lines under its name. */
interface Group {
  name: string;
  lines: Line[];
}

function grouped(table: Table): Group[] {
  if (!table.is_grouped) return [{ name: "", lines: table.lines }];
  const groups: Group[] = [];
  for (const { cells: [first, ...cells], is_strong } of table.lines) {
    const name = first?.text ?? "";
    if (groups.at(-1)?.name !== name) groups.push({ name, lines: [] });
    groups.at(-1)?.lines.push({ cells, is_strong });
  }
  return groups;
}

function body(context: Context, { name, lines }: Group, columns: readonly Column[]): HTMLTableSectionElement {
  const largest = columns.map((_, i) => Math.max(...lines.map((line) => line.cells[i]?.sort ?? 0)));
  const title = h("th", { scope: "rowgroup", colspan: columns.length }, h("span", {}, name));
  return h("tbody", {}, name === "" ? null : h("tr", { class: "of-group" }, title), lines.map((line) => row(context, line, columns, largest)));
}

/** A table of the sheet, sortable by its columns. On narrow screens it scrolls or becomes cards. */
export function table(context: Context, of: Table, label: string): HTMLElement {
  const columns = of.is_grouped ? of.columns.slice(1) : of.columns;
  const heads = columns.map((column) => ({ ...column, about: column.about === "" ? null : sub(column.about) }));
  const bodies = grouped(of).map((group) => body(context, group, columns));
  const isWide = columns.filter((column) => column.is_number).length >= MANY_NUMBERS;
  const built = sortable(cardTable(heads, bodies, isWide ? "numbers" : "cards"));
  return isWide ? scrollBox(label, built) : built;
}

/** Renders blocks; consecutive sentences form one list. */
function shown(context: Context, parts: Parts, { blocks, title }: Section): Child[] {
  const all: Child[] = [];
  let list: HTMLElement | null = null;
  let label = title;
  for (const block of blocks) {
    if (block.kind === "item") {
      if (list === null) all.push((list = h("ul", { class: "prose" })));
      list.append(h("li", {}, prose(block.text)));
      continue;
    }
    list = null;
    if (block.kind === "title") {
      label = block.text;
      all.push(h("h3", {}, h("span", {}, block.text, noteMarks(context.view, block.notes ?? [])), validityMark(context.view)));
    } else if (block.kind === "note") {
      all.push(h("p", { class: "hint" }, prose(block.text)));
    } else if (block.kind === "table") {
      all.push(fold(`Table of ${format.plural(block.lines.length, "line")}`, table(context, block, label)));
    } else {
      all.push(...parts[block.part]().flat());
    }
  }
  return all.filter((child) => child !== null && child !== undefined && child !== false);
}


/** All sections with content. */
export function sheet(context: Context): HTMLElement[] {
  const parts = partsOf(context);
  return context.view.sheet.flatMap((one) => {
    const children = shown(context, parts, one);
    return children.length === 0 ? [] : [section(one.id, one.title, children)];
  });
}
