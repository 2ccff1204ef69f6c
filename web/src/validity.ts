/** Shows a run's validity at the top and next to its numbers. */

import { chip, h, prose } from "./dom";
import type { Validity, View } from "./view";

/** Colour, word and meaning of each validity. */
export const VALIDITY: Record<Validity, { tone: "good" | "warn" | "bad"; word: string; meaning: string }> = {
  valid: { tone: "good", word: "VALID", meaning: "All validity rules are met." },
  unreplicated: {
    tone: "warn",
    word: "UNREPLICATED",
    meaning: "Too few blocks for an interval or a ranking: the numbers are those of single measurements.",
  },
  "not-steady": {
    tone: "warn",
    word: "NOT-STEADY",
    meaning: "A steadiness rule was violated: use the numbers with care.",
  },
  invalid: {
    tone: "bad",
    word: "INVALID",
    meaning: "A correctness rule was violated: do not use the numbers.",
  },
};

/** The meaning for this run; for a run that is not steady, what was not steady. */
function meaning(view: View): string {
  const { meaning: general } = VALIDITY[view.validity];
  if (view.validity === "invalid" && view.status !== "complete") return "The run is not complete: do not use the numbers.";
  if (view.validity !== "not-steady" || view.unsteady.length === 0) return general;
  const said = view.unsteady.join("; ");
  return `${said.charAt(0).toUpperCase()}${said.slice(1)}: use the numbers with care.`;
}

/** The validity of a run with its meaning and reasons. */
export function verdict(view: View): HTMLElement {
  const { tone, word } = VALIDITY[view.validity];
  return h(
    "div",
    { class: `validity validity-${tone}` },
    chip(tone, word),
    h(
      "div",
      {},
      h("p", {}, meaning(view)),
      view.reasons.length > 0 ? h("ul", {}, view.reasons.map((reason) => h("li", {}, prose(reason)))) : null,
    ),
  );
}

/** The validity mark next to numbers; null for a valid run. */
export function validityMark(view: View): HTMLElement | null {
  if (view.validity === "valid") return null;
  const { tone, word } = VALIDITY[view.validity];
  return chip(tone, word);
}
