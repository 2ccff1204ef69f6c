/** Footnotes: warnings about rows. */

import type { Context } from "../context";
import { fold, h, prose } from "../dom";
import * as format from "../format";
import type { View } from "../view";

/** Footnote marks of a row, linked to the notes; invalid indices are ignored. */
export function noteMarks(view: View, notes: readonly number[]): HTMLElement | null {
  const known = notes.filter((i) => view.footnotes[i] !== undefined);
  if (known.length === 0) return null;
  const marks = known.map((i) =>
    h("a", { href: `#note-${i + 1}`, title: view.footnotes[i], "aria-label": `note ${i + 1}` }, i + 1),
  );
  return h("sup", { class: "notes" }, marks);
}

/** The list of footnotes. */
export function notes(context: Context): (HTMLElement | null)[] {
  const { footnotes } = context.view;
  const pointed = new Set(context.view.cells.flatMap((row) => row.footnotes));
  const general = footnotes.some((_, i) => !pointed.has(i));
  const items = footnotes.map((text, i) => h("li", { id: `note-${i + 1}`, tabindex: -1 }, prose(text)));
  const hint = general ? h("p", { class: "hint" }, "Notes without a reference in a table concern the whole run.") : null;
  const list = h("ol", { class: "footnotes" }, items);
  return [hint, fold(format.plural(items.length, "note"), list)];
}
