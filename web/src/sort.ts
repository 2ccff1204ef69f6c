/** Sortable tables; each group of lines is sorted separately. */

import { h } from "./dom";

type Order = "ascending" | "descending";

function key(row: HTMLTableRowElement, at: number): number | string {
  const cell = row.cells[at];
  const sort = cell?.dataset["sort"];
  return sort === undefined ? (cell?.textContent ?? "") : Number(sort);
}

/** Numbers first; other values come last in either order. */
function compare(a: number | string, b: number | string, order: Order): number {
  const turn = order === "ascending" ? 1 : -1;
  if (typeof a === "number" && typeof b === "number") return turn * (a - b);
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return turn * String(a).localeCompare(String(b), "en", { numeric: true });
}

function sort(table: HTMLTableElement, at: number, order: Order): void {
  for (const body of table.tBodies) {
    const lines = [...body.querySelectorAll<HTMLTableRowElement>("tr:not(.of-group)")];
    lines.sort((a, b) => compare(key(a, at), key(b, at), order));
    // Appending moves a line to the end of its group.
    body.append(...lines);
  }
}

/** Adds a sort button to each heading; numbers sort largest first. */
export function sortable(table: HTMLTableElement): HTMLTableElement {
  const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
  for (const [at, head] of heads.entries()) {
    const button = h("button", { type: "button", class: "sort" });
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const first: Order = head.classList.contains("number") ? "descending" : "ascending";
      const other: Order = first === "ascending" ? "descending" : "ascending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order);
      sort(table, at, order);
    });
  }
  return table;
}
