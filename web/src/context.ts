/** What every section needs besides its own part of the view. */

import { h } from "./dom";
import { type Group, groups } from "./groups";
import * as theme from "./theme";
import type { View } from "./view";

/** A view with what is derived from it once. */
export interface Context {
  view: View;
  groups: Group[];
  /** True when more than one profile was measured, so that texts must name it. */
  manyProfiles: boolean;
}

/** Derives the context of a view. */
export function contextOf(view: View): Context {
  const found = groups(view);
  return {
    view,
    groups: found,
    manyProfiles: new Set(found.map((g) => g.workload)).size > 1,
  };
}

/** Gives every element with a target's name that target's colour and mark; again after each change of theme. */
export function paint(view: View, root: ParentNode): void {
  const looks = theme.looks(view, theme.current());
  for (const element of root.querySelectorAll<HTMLElement>("[data-target]")) {
    const look = looks.get(element.dataset["target"] ?? "");
    if (look) theme.wear(element, look);
  }
}

/** A target's name behind its mark. */
export function targetName(name: string): HTMLElement {
  return h("span", { class: "target", "data-target": name }, name);
}
