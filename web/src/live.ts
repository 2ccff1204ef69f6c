/** The live page: follows a run through the events of the program that serves it. */

import "./style.css";
import "./tables.css";
import "./charts.css";
import "./live.css";
import { h } from "./dom";
import { charts, looks } from "./live/charts";
import { head, type Kept, type Link, REPORTING, rest, store as latest, viewOf } from "./live/head";
import { empty, type Store, taken } from "./live/store";
import { bar } from "./sections/head";
import * as theme from "./theme";
import { VALIDITY } from "./validity";

/** Reconnect delay, in case the browser does not reconnect itself. */
const AGAIN_MS = 2000;
/** Refresh interval of charts and times, to limit the load on the machine. */
const TICK_MS = 1000;

let store: Store = empty();
let link: Link = "connecting";
let report: Kept | null = null;
/** True if there are new points to draw. */
let isNew = false;

const clock = (): number => performance.now() / 1000;
const drawn = charts(() => store);
const top = h("div", {});
const under = h("div", {});

function title(): string {
  const { state } = store;
  if (state === null) return "cachedyno: a run in progress";
  const validity = report?.view?.validity;
  const ended = link === "closed" ? state.ended?.status : state.ended && REPORTING;
  const over = validity === undefined ? ended : VALIDITY[validity].word;
  const where = over ?? state.now?.target ?? "checking";
  return `${where} · ${state.title} · cachedyno`;
}

function show(): void {
  document.title = title();
  // Keep the keyboard focus.
  const focused = document.activeElement?.id ?? "";
  top.replaceChildren(head(store, link, report, clock()));
  const { state } = store;
  under.replaceChildren(...[latest(store), ...(state === null ? [] : rest(state))].filter((part) => part !== null));
  const lookOf = looks(store, theme.current());
  for (const name of under.querySelectorAll<HTMLElement>("[data-target]")) {
    theme.wear(name, lookOf(name.dataset["target"] ?? ""));
  }
  if (focused !== "" && document.activeElement?.id !== focused) document.getElementById(focused)?.focus();
}

/** Fetches and keeps the report, since the program exits after the run. */
async function keep(source: EventSource): Promise<void> {
  const answer = await fetch("/report").catch(() => null);
  if (answer?.ok) {
    const text = await answer.text();
    report = { url: URL.createObjectURL(new Blob([text], { type: "text/html" })), view: viewOf(text) };
  }
  link = "closed";
  source.close();
  show();
}

function heard(source: EventSource, name: string, text: string): void {
  link = "connected";
  store = taken(store, name, text, clock());
  if (name !== "state") isNew = true;
  if (name === "point" || name === "usage") return;
  const told = store.state?.ended?.report;
  if (told === true && report === null) void keep(source);
  else if (told === false) {
    link = "closed";
    source.close();
  }
  show();
}

function tick(): void {
  if (document.hidden) return;
  if (isNew) drawn.refresh();
  isNew = false;
  if (link !== "closed") show();
}

/** Finds out by a plain request why the connection failed, and reconnects after a while. */
async function again(): Promise<void> {
  const asked = new AbortController();
  const answer = await fetch("/events", { signal: asked.signal }).catch(() => null);
  asked.abort();
  if (answer?.status === 503) link = "crowded";
  else link = answer?.ok ? "connecting" : "lost";
  show();
  setTimeout(listen, AGAIN_MS);
}

function listen(): void {
  const source = new EventSource("/events");
  for (const name of ["snapshot", "state", "point", "usage"]) {
    source.addEventListener(name, (event) => heard(source, name, (event as MessageEvent<string>).data));
  }
  source.addEventListener("error", () => {
    if (link === "closed") return;
    const isOver = store.state?.ended != null;
    // Keep showing "too many readers" until the state changes.
    if (isOver || link !== "crowded") link = isOver ? "closed" : "lost";
    if (isOver) source.close();
    show();
    if (!isOver && source.readyState === EventSource.CLOSED) void again();
  });
}

theme.start();
theme.onChange(show);
document.getElementById("page")?.replaceChildren(bar(), h("main", {}, top, drawn.element, under));
show();
listen();
setInterval(tick, TICK_MS);
