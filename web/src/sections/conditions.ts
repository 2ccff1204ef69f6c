/** Facts about machine and servers, by group. */

import type { Context } from "../context";
import { chip, h, prose, sub } from "../dom";
import * as format from "../format";
import type { Condition } from "../view";

function fact(condition: Condition): HTMLElement {
  const warning = condition.warning;
  return h(
    "div",
    { class: warning === null ? undefined : "warned" },
    h("dt", {}, condition.name),
    h("dd", {}, condition.value, warning === null ? null : h("p", {}, chip("warn", "warning"), " ", prose(warning))),
  );
}

function group(name: string, facts: Condition[]): HTMLElement {
  const warnings = facts.filter((f) => f.warning !== null).length;
  return h(
    "details",
    { class: "group", open: warnings > 0 },
    h(
      "summary",
      {},
      h("span", { class: "group-name" }, name),
      sub(format.plural(facts.length, "fact")),
      warnings > 0 ? chip("warn", format.plural(warnings, "warning")) : null,
    ),
    h("dl", {}, facts.map(fact)),
  );
}

/** All conditions by group; groups with warnings are open. */
export function conditions(context: Context): HTMLElement[] {
  const all = context.view.conditions.facts;
  const names = [...new Set(all.map((c) => c.group))];
  const warnings = all.filter((c) => c.warning !== null).length;
  const said = warnings === 0 ? "" : ` ${format.plural(warnings, "of them has a warning", "of them have warnings")}.`;
  return [
    h("p", { class: "hint" }, `${format.plural(all.length, "fact")} about machine and servers at the start of the run.${said}`),
    ...names.map((name) => group(name, all.filter((c) => c.group === name))),
  ];
}
