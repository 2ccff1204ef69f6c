/** Statements of others, judged by these measurements. */

import type { Context } from "../context";
import { chip, fold, h, labelled, prose, section, tableHead } from "../dom";
import * as format from "../format";
import type { ClaimView } from "../view";

function verdict(word: string): HTMLElement {
  if (word === "confirmed") return chip("good", word);
  if (word === "refuted") return chip("bad", word);
  return chip(word === "not run" ? "plain" : "doubt", word);
}

function row(claim: ClaimView): HTMLTableRowElement {
  const measured = claim.measured;
  return h(
    "tr",
    { id: `claim-${claim.id}` },
    h(
      "th",
      { scope: "row", "data-label": "Statement" },
      h("div", {}, claim.text, h("span", { class: "sub" }, claim.source)),
    ),
    labelled("Verdict", verdict(claim.verdict)),
    labelled("Expected", claim.expected),
    labelled(
      "Measured",
      measured === null
        ? h("span", { class: "none" }, format.NONE)
        : h("span", { class: "nowrap" }, format.ratioWithInterval(measured)),
      claim.workload === null ? null : h("span", { class: "sub" }, `on ${claim.workload}`),
    ),
    labelled("Explanation", prose(claim.note)),
  );
}

/** The table of claims; null for a study without any. */
export function claims(context: Context): HTMLElement | null {
  const all = context.view.claims;
  if (all.length === 0) return null;
  const tally = ["confirmed", "refuted", "undecided", "not run"]
    .map((word): [string, number] => [word, all.filter((c) => c.verdict === word).length])
    .filter(([, n]) => n > 0)
    .map(([word, n]) => `${n} ${word}`);
  return section(
    "claims",
    "Claims",
    h("p", { class: "hint" }, `Of ${format.plural(all.length, "statement")}: ${format.list(tally)}.`),
    fold(
      `Table of ${format.plural(all.length, "statement")}`,
      h(
        "table",
        { class: "cards claims" },
        tableHead(["Statement", "Verdict", "Expected", "Measured", "Explanation"]),
        h("tbody", {}, all.map(row)),
      ),
    ),
  );
}
