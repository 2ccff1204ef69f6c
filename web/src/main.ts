/** The report's page: its sections in the order in which they are read. */

import "./style.css";
import "./tables.css";
import "./charts.css";
import "./print.css";
import { type Context, contextOf, paint } from "./context";
import { h } from "./dom";
import { advice } from "./sections/advice";
import { charts } from "./sections/charts";
import { claims } from "./sections/claims";
import { conditions } from "./sections/conditions";
import { effort } from "./sections/effort";
import { facts } from "./sections/facts";
import { failures } from "./sections/failures";
import { bar, head } from "./sections/head";
import { method } from "./sections/method";
import { noise } from "./sections/noise";
import { notes } from "./sections/notes";
import { ramps } from "./sections/ramps";
import { results } from "./sections/results";
import { search } from "./sections/search";
import { targets } from "./sections/targets";
import * as theme from "./theme";
import { parseView, ViewError } from "./parse";
import type { View } from "./view";

const SECTIONS: ((context: Context) => HTMLElement | null)[] = [
  head,
  advice,
  ramps,
  search,
  results,
  effort,
  facts,
  claims,
  charts,
  targets,
  failures,
  noise,
  conditions,
  notes,
  method,
];

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
  const sections = SECTIONS.map((build) => build(context)).filter((part) => part !== null);
  const [first, ...rest] = sections as [HTMLElement, ...HTMLElement[]];
  return [bar(), h("main", {}, first, contents(rest), rest)];
}

function line(text: string): HTMLElement[] {
  return [h("main", {}, h("p", { class: "line" }, text))];
}

function content(text: string): HTMLElement[] {
  try {
    const view = parseView(text);
    if (view === null) {
      return line("This is the template of a cachedyno report: it holds no data yet. `cachedyno report` fills it.");
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

// A closed group would be missing on paper.
addEventListener("beforeprint", () => {
  for (const group of document.querySelectorAll("details")) group.open = true;
});
