/** Light and dark theme, and target colours, which are the same in every chart and table. */

import type { View } from "./view";

/** The active theme. */
export type Theme = "light" | "dark";

/** A target's colour, mark and dash, so that it can be recognized without colour too. */
export interface Look {
  color: string;
  mark: Mark;
  /** Dash pattern of lines; empty for solid lines. */
  dash: number[];
  /** True for a control, which repeats another target: drawn hollow. */
  hollow: boolean;
}

// Okabe and Ito's palette for all kinds of colour vision, darkened on white and lightened on black
// to a contrast of at least 3:1 with the background.
const PALETTE: Record<Theme, readonly string[]> = {
  light: ["#0b6bb0", "#c8500a", "#00805c", "#a8548a", "#8f6b00", "#2f8fb8", "#5b6472", "#7a4b2a"],
  dark: ["#5aa9e6", "#f58f4f", "#35c79a", "#e59cc8", "#ecc04a", "#9bdcf5", "#a9b3c1", "#cf9d7a"],
};

/** Outlines of marks as paths in a 16 by 16 square. */
const OUTLINES = {
  circle: "M8 2a6 6 0 1 0 0 12a6 6 0 1 0 0 -12z",
  square: "M2.5 2.5h11v11h-11z",
  triangle: "M8 1.5l7 13h-14z",
  diamond: "M8 1l7 7l-7 7l-7 -7z",
  cross: "M5.5 1.5h5v4h4v5h-4v4h-5v-4h-4v-5h4z",
  wedge: "M8 14.5l7 -13h-14z",
  bow: "M1.5 2l6.5 3.5l6.5 -3.5v12l-6.5 -3.5l-6.5 3.5z",
} as const;

/** Shape of a mark. */
export type Mark = keyof typeof OUTLINES;

// One less than the number of colours, so that the ninth target shares its colour with the first, but
// neither mark nor dash. All three together repeat after 56.
const MARKS = Object.keys(OUTLINES) as Mark[];
const DASHES: readonly number[][] = [[], [7, 3], [2, 3], [9, 3, 2, 3], [12, 4], [4, 2], [1, 2]];

const STORAGE_KEY = "cachedyno-theme";
const listeners = new Set<() => void>();

/** The looks of all targets of a view in one theme, by name. */
export function looks(view: View, theme: Theme): Map<string, Look> {
  const own = view.targets.filter((t) => t.control_of === null).map((t) => t.name);
  const measured = [...view.cells, ...(view.ramps ?? [])];
  const extra = measured.map((row) => row.target).filter((name) => !view.targets.some((t) => t.name === name));
  const names = [...new Set([...own, ...extra])];
  const found = new Map<string, Look>();
  names.forEach((name, i) => found.set(name, look(i, theme, false)));
  for (const control of view.targets.filter((t) => t.control_of !== null)) {
    const repeated = names.indexOf(control.control_of ?? "");
    found.set(control.name, look(repeated < 0 ? found.size : repeated, theme, true));
  }
  return found;
}

/** The look of the target with this number; `hollow` for a control. */
export function look(i: number, theme: Theme, hollow: boolean): Look {
  const palette = PALETTE[theme];
  return {
    color: palette[i % palette.length] as string,
    mark: MARKS[i % MARKS.length] as Mark,
    dash: hollow ? [2, 4] : [...(DASHES[i % DASHES.length] as number[])],
    hollow,
  };
}

/** The look of a line that is not a target: solid with round points. */
export function plain(color: string): Look {
  return { color, mark: "circle", dash: [], hollow: false };
}

/** A look's mark as an ECharts symbol. */
export function symbol({ mark }: Look): string {
  return `path://${OUTLINES[mark]}`;
}

/** The path of a mark in a 16 by 16 square. */
export function outline(mark: Mark): string {
  return OUTLINES[mark];
}

/** Applies the colour and mark of a look to an element, for the dot before a name. */
export function wear(element: HTMLElement, { color, mark, hollow }: Look): void {
  const brush = hollow ? " fill='none' stroke='black' stroke-width='2.4'" : "";
  const drawn = `<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><path d='${OUTLINES[mark]}'${brush}/></svg>`;
  element.style.setProperty("--target", color);
  element.style.setProperty("--mark", `url("data:image/svg+xml,${encodeURIComponent(drawn)}")`);
}

/** The colours of one theme, for lines that are not targets. */
export function palette(theme: Theme): readonly string[] {
  return PALETTE[theme];
}

/** The current theme. */
export function current(): Theme {
  return document.documentElement.dataset["theme"] === "dark" ? "dark" : "light";
}

function show(theme: Theme): void {
  if (document.documentElement.dataset["theme"] === theme) return;
  document.documentElement.dataset["theme"] = theme;
  for (const listener of listeners) listener();
}

/** Registers a callback for changes of the theme. */
export function onChange(listener: () => void): void {
  listeners.add(listener);
}

// A page opened from a file may have no storage.
function remembered(): Theme | null {
  try {
    const theme = localStorage.getItem(STORAGE_KEY);
    return theme === "dark" || theme === "light" ? theme : null;
  } catch {
    return null;
  }
}

function remember(theme: Theme): void {
  try {
    localStorage.setItem(STORAGE_KEY, theme);
  } catch {
    // The choice then lasts until the page is closed.
  }
}

/** Applies the reader's choice, or else the system's; print is always light. */
export function start(): void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const wanted = (): Theme => remembered() ?? (system.matches ? "dark" : "light");
  system.addEventListener("change", () => show(wanted()));
  addEventListener("beforeprint", () => show("light"));
  addEventListener("afterprint", () => show(wanted()));
  show(wanted());
}

/** Switches to the other theme and stores the choice. */
export function toggle(): Theme {
  const next = current() === "dark" ? "light" : "dark";
  remember(next);
  show(next);
  return next;
}
