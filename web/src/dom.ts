/** Builds elements. Data only becomes text nodes, since a target's name may contain HTML. */

/** Content of an element; null and false are ignored. */
export type Child = Node | string | number | null | false | undefined;

/** Attributes; false and undefined omit the attribute, true sets it empty. */
export type Attributes = Record<string, string | number | boolean | undefined>;

/** Makes an element; `on…` handlers are added by the caller. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Child | Child[])[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter(isShown).map(toNode));
  return element;
}

function isShown(child: Child): child is Node | string | number {
  return child !== null && child !== undefined && child !== false;
}

function toNode(child: Node | string | number): Node | string {
  return typeof child === "number" ? String(child) : child;
}

/** A section of the page with its heading and anchor `#id`. */
export function section(id: string, title: string, ...children: (Child | Child[])[]): HTMLElement {
  const heading = h("h2", { id: `${id}-title` }, title);
  return h("section", { id, "aria-labelledby": `${id}-title` }, heading, ...children);
}

/** A box in which a wide table scrolls, also by keyboard, with a hint that it does. */
export function scrollBox(label: string, table: HTMLElement): HTMLElement {
  const box = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, table);
  const frame = h("div", { class: "scroll-frame" }, h("p", { class: "scroll-hint" }, "Scroll sideways to see more of the table."), box);
  if (typeof ResizeObserver !== "function") return frame;
  const sized = new ResizeObserver(() => frame.classList.toggle("too-wide", box.scrollWidth > box.clientWidth + 1));
  sized.observe(box);
  sized.observe(table);
  return frame;
}

const NARROW = "(max-width: 720px)";

/** Long content, folded on narrow screens until it is opened; always open on wide ones. */
export function fold(summary: string, ...children: (Child | Child[])[]): HTMLElement {
  const details = h("details", { class: "fold", open: true }, h("summary", {}, summary), ...children);
  if (typeof matchMedia !== "function") return details;
  const screen = matchMedia(NARROW);
  const fit = (): void => {
    details.open = !screen.matches;
  };
  screen.addEventListener("change", fit);
  fit();
  return details;
}

/** A cell of a table that becomes a card on narrow screens, with its column's name. */
export function labelled(label: string, ...children: (Child | Child[])[]): HTMLTableCellElement {
  return h("td", { "data-label": label }, h("div", {}, ...children));
}

/** The heading of a column, with small text below its name. */
export interface Heading {
  title: string;
  about: HTMLElement | null;
  is_number: boolean;
}

/** A table with several bodies; with class `cards` its rows become cards on narrow screens. */
export function cardTable(heads: readonly Heading[], bodies: HTMLTableSectionElement[], kind: string): HTMLTableElement {
  const head = ({ title, about, is_number }: Heading): HTMLElement => h("th", { scope: "col", class: is_number ? "number" : undefined }, title, about);
  return h("table", { class: kind }, h("thead", {}, h("tr", {}, heads.map(head))), bodies);
}

/** A column of a table: its name and the content of its cells. */
export type Column<T> = readonly [name: string, cell: (row: T) => Child | Child[]];

/** A table whose rows become cards on narrow screens; the first column is the row heading, each list a body. */
export function cards<T>(columns: readonly Column<T>[], bodies: readonly (readonly T[])[], kind = ""): HTMLTableElement {
  const cell = (row: T, [name, content]: Column<T>, i: number): HTMLElement => {
    return i === 0 ? h("th", { scope: "row" }, h("div", {}, content(row))) : labelled(name, content(row));
  };
  const rows = bodies.map((body) => h("tbody", {}, body.map((row) => h("tr", {}, columns.map((column, i) => cell(row, column, i))))));
  return cardTable(columns.map(([title]) => ({ title, about: null, is_number: false })), rows, `cards ${kind}`.trim());
}

/** Small text below a cell's content. */
export function sub(...children: Child[]): HTMLElement {
  return h("span", { class: "sub" }, ...children);
}

/** Placeholder for a missing value, by default a dash. */
export function none(words = "–"): HTMLElement {
  return h("span", { class: "none" }, words);
}

const CHIP_GLYPHS: Record<string, string> = { good: "✓", bad: "✕", doubt: "?", warn: "!", plain: "" };

/** A sentence with its parts in backticks formatted as code. */
export function prose(text: string): Child[] {
  return text.split(/`([^`]+)`/).map((part, i) => (i % 2 === 1 ? h("code", {}, part) : part));
}

/** A verdict as a word with a colour and a glyph. */
export function chip(tone: "good" | "bad" | "doubt" | "warn" | "plain", text: string): HTMLElement {
  const glyph = CHIP_GLYPHS[tone];
  return h(
    "span",
    { class: `chip chip-${tone}` },
    glyph ? h("span", { class: "glyph", "aria-hidden": "true" }, glyph) : null,
    text,
  );
}
