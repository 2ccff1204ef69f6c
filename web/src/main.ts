/** The report page: the answer, the sections of the sheet, and the method. */

import "./style.css";
import "./tables.css";
import "./charts.css";
import "./print.css";
import { contextOf, paint } from "./context";
import { h } from "./dom";
import { bar, head } from "./sections/head";
import { method } from "./sections/method";
import { sheet } from "./sections/sheet";
import * as theme from "./theme";
import { parseView, ViewError } from "./parse";
import type { View } from "./view";

function contents(sections: readonly HTMLElement[]): HTMLElement {
  const links = sections.flatMap((part) => {
    const title = part.querySelector("h2")?.textContent;
    return title ? [h("a", { href: `#${part.id}` }, title)] : [];
  });
  return h("nav", { class: "contents", "aria-label": "contents" }, links);
}

/** Builds the whole page of a view. */
export function page(view: View): HTMLElement[] {
  const context = contextOf(view);
  const rest = [...sheet(context), method(context)];
  return [bar(), h("main", {}, head(context), contents(rest), rest)];
}

function line(text: string): HTMLElement[] {
  return [h("main", {}, h("p", { class: "line" }, text))];
}

function content(text: string): HTMLElement[] {
  try {
    const view = parseView(text);
    if (view === null) {
      return line("This is the template of a cachedyno report without data. `cachedyno report` fills it.");
    }
    document.title = `${view.title} · cachedyno`;
    const built = page(view);
    for (const part of built) paint(view, part);
    theme.onChange(() => paint(view, document));
    return built;
  } catch (error) {
    if (error instanceof ViewError) return line(error.message);
    throw error;
  }
}

theme.start();
const data = document.getElementById("cachedyno-view")?.textContent ?? "";
document.getElementById("page")?.replaceChildren(...content(data));

// A closed group would be missing in print.
addEventListener("beforeprint", () => {
  for (const group of document.querySelectorAll("details")) group.open = true;
});
