/** Shared context of all sections. */

import { h } from "./dom";
import { type Group, groups } from "./groups";
import * as theme from "./theme";
import type { View } from "./view";

/** A view with derived values. */
export interface Context {
  view: View;
  groups: Group[];
  /** True if more than one profile was measured, so that texts must name it. */
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

/** Applies each target's colour and mark to all elements with its name, again after each change of theme. */
export function paint(view: View, root: ParentNode): void {
  const looks = theme.looks(view, theme.current());
  for (const element of root.querySelectorAll<HTMLElement>("[data-target]")) {
    const look = looks.get(element.dataset["target"] ?? "");
    if (look) theme.wear(element, look);
  }
}

/** A target's name with its mark. */
export function targetName(name: string): HTMLElement {
  return h("span", { class: "target", "data-target": name }, name);
}
