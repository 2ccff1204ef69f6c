/** Builds elements. Data becomes text nodes only: a target may be named like a tag. */

/** What an element may contain; null and false are left out. */
export type Child = Node | string | number | null | false | undefined;

/** Attributes; false and undefined leave the attribute out, true sets it empty. */
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

/** A section of the page with its heading, reachable by `#id`. */
export function section(id: string, title: string, ...children: (Child | Child[])[]): HTMLElement {
  const heading = h("h2", { id: `${id}-title` }, title);
  return h("section", { id, "aria-labelledby": `${id}-title` }, heading, ...children);
}

/** A box in which a table that is too wide scrolls by itself, also by keyboard, and which then says so. */
export function scrollBox(label: string, table: HTMLElement): HTMLElement {
  const box = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, table);
  const frame = h("div", { class: "scroll-frame" }, h("p", { class: "scroll-hint" }, "The table goes on to the right: scroll it sideways."), box);
  if (typeof ResizeObserver !== "function") return frame;
  const sized = new ResizeObserver(() => frame.classList.toggle("too-wide", box.scrollWidth > box.clientWidth + 1));
  sized.observe(box);
  sized.observe(table);
  return frame;
}

const NARROW = "(max-width: 720px)";

/** What is long, folded on a narrow screen until it is asked for; on a wide one it is always open. */
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

/** A cell of a table that becomes a card on narrow screens: carries its column's name. */
export function labelled(label: string, ...children: (Child | Child[])[]): HTMLTableCellElement {
  return h("td", { "data-label": label }, h("div", {}, ...children));
}

/** The heading of a column, with what stands smaller below its name. */
export interface Heading {
  title: string;
  about: HTMLElement | null;
  is_number: boolean;
}

/** A table of bodies; with the class `cards` its rows become cards on narrow screens. */
export function cardTable(heads: readonly Heading[], bodies: HTMLTableSectionElement[], kind: string): HTMLTableElement {
  const head = ({ title, about, is_number }: Heading): HTMLElement => h("th", { scope: "col", class: is_number ? "number" : undefined }, title, about);
  return h("table", { class: kind }, h("thead", {}, h("tr", {}, heads.map(head))), bodies);
}

/** A column of a table: its name, and what a row has in it. */
export type Column<T> = readonly [name: string, cell: (row: T) => Child | Child[]];

/** A table whose rows become cards on narrow screens; the first column heads a row, and each list is a body. */
export function cards<T>(columns: readonly Column<T>[], bodies: readonly (readonly T[])[], kind = ""): HTMLTableElement {
  const cell = (row: T, [name, content]: Column<T>, i: number): HTMLElement => {
    return i === 0 ? h("th", { scope: "row" }, h("div", {}, content(row))) : labelled(name, content(row));
  };
  const rows = bodies.map((body) => h("tbody", {}, body.map((row) => h("tr", {}, columns.map((column, i) => cell(row, column, i))))));
  return cardTable(columns.map(([title]) => ({ title, about: null, is_number: false })), rows, `cards ${kind}`.trim());
}

/** What stands smaller below a cell's content. */
export function sub(...children: Child[]): HTMLElement {
  return h("span", { class: "sub" }, ...children);
}

/** Words, by default a dash, in the place of what there is not. */
export function none(words = "–"): HTMLElement {
  return h("span", { class: "none" }, words);
}

const CHIP_GLYPHS: Record<string, string> = { good: "✓", bad: "✕", doubt: "?", warn: "!", plain: "" };

/** A sentence whose parts in backticks are set as code. */
export function prose(text: string): Child[] {
  return text.split(/`([^`]+)`/).map((part, i) => (i % 2 === 1 ? h("code", {}, part) : part));
}

/** A verdict in a word, told apart by colour and by glyph. */
export function chip(tone: "good" | "bad" | "doubt" | "warn" | "plain", text: string): HTMLElement {
  const glyph = CHIP_GLYPHS[tone];
  return h(
    "span",
    { class: `chip chip-${tone}` },
    glyph ? h("span", { class: "glyph", "aria-hidden": "true" }, glyph) : null,
    text,
  );
}
