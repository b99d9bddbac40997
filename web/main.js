// main.js - the page as a whole: header, theme, which view is shown, keys, what is said while the connection is lost.

import {listeners} from "./api.js";
import {askToken, help} from "./dialogs.js";
import {h, icon, replace, text} from "./dom.js";
import {clock, duration, count} from "./format.js";
import {OverviewPage} from "./overview.js";
import {RunPage, RunsPage} from "./runs.js";
import {SessionPage} from "./session.js";
import {startSession} from "./start.js";
import {TOKEN, store} from "./store.js";
import {lossOf} from "./words.js";

const THEMES = ["system", "light", "dark"], THEME_KEY = "sluice-theme";
const view = document.getElementById("view"), alarm = document.getElementById("alarm");
let page = null, shown = null, offered = "";

// ---- theme ----

function theme(name) {
	const dark = name === "dark" || (name !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
	document.documentElement.dataset.theme = dark ? "dark" : "light";
	document.documentElement.dataset.choice = name;
}

function nextTheme() {
	const name = THEMES[(THEMES.indexOf(localStorage.getItem(THEME_KEY) ?? "system") + 1) % THEMES.length];
	localStorage.setItem(THEME_KEY, name);
	theme(name);
	themeButton();
	window.dispatchEvent(new Event("resize"));
}

// ---- header ----

const header = {
	tabs: h("nav.tabs", {"aria-label": "sessions"}),
	connection: h("span.connection", {role: "status"}),
	role: h("span.role.dim"),
	theme: h("button.tool", {onclick: nextTheme}, icon("theme")),
	start: h("button.button.primary.small", {title: "start a session (n)", onclick: () => startSession()}, icon("play"), "Start"),
};

function themeButton() {
	const name = document.documentElement.dataset.choice;
	const words = `colours: ${name === "system" ? "as the system" : name} (t)`;
	header.theme.title = words;
	header.theme.setAttribute("aria-label", words);
}

function build() {
	document.getElementById("top").append(h("a.brand", {href: "#/", "aria-label": "Sluice: all sessions"}, h("img", {src: "assets/logo.svg", alt: "", width: 26, height: 26}), h("b", "Sluice")),
		header.tabs, h("span.spring"), header.connection, header.role, header.start, header.theme, h("button.tool.question", {title: "keys (?)", "aria-label": "keys", onclick: help}, "?"));
}

function tabs() {
	const link = (href, label, state, loss) => h("a", {href, "aria-current": location.hash === href || (href === "#/" && shown === "overview") ? "page" : undefined}, state && h("i", {class: `dot ${loss ? "bad" : state}`}), label);
	const sessions = store.sessions.slice(0, 6).map(({name, state, crashed}) => link(`#/session/${encodeURIComponent(name)}`, name, crashed ? "crashed" : state, lossOf(store.statuses.get(name)?.ledger?.total)));
	const links = [link("#/", "Sessions"), ...sessions, link("#/runs", "Runs")], key = links.map((each) => each.outerHTML).join();
	if (key !== offered)
		replace(header.tabs, links);
	offered = key;
}

function title() {
	const name = shown === "session" ? page.name : null;
	const status = name && store.statuses.get(name);
	const loss = status ? lossOf(status.ledger.total) : 0;
	const lost = store.connection.state === "lost" ? "(no connection) " : loss ? `\u26a0 ${count(loss)} lost \u2013 ` : "";
	document.title = lost + (name ? `${name}${status ? ` ${status.state}` : ""} \u2013 Sluice` : "Sluice");
}

// ---- the connection ----

function connection() {
	const {state, since, why} = store.connection;
	text(header.connection, {live: "live", connecting: "connecting", lost: "no connection"}[state]);
	header.connection.className = `connection ${state}`;
	document.body.classList.toggle("lost", state === "lost");
	alarm.hidden = state !== "lost";
	if (state === "lost")
		text(alarm, store.capabilities ? `Connection lost since ${clock(since)} (${duration((Date.now() - since) / 1000)}): what you see is from then. ${why === TOKEN ? "A token is needed." : "Trying again\u2026"}` :
			why === TOKEN ? "Not connected: this service asks for a token." : `Not connected: ${why}. Trying again\u2026`);
	title();
}

// ---- views ----

function route() {
	const [, kind, ...rest] = location.hash.split("/");
	let name = rest.join("/");
	try {
		name = decodeURIComponent(name);
	} catch {
		// a link that was cut off: the name as it is
	}
	page?.close();
	shown = {session: "session", runs: "runs", run: "run"}[kind] ?? "overview";
	page = {session: () => new SessionPage(name), runs: () => new RunsPage(), run: () => new RunPage(Number(name)), overview: () => new OverviewPage()}[shown]();
	replace(view, page.element);
	window.scrollTo(0, 0);
	tabs();
	title();
}

function keys(event) {
	if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") || event.target.closest?.("input, select, textarea"))
		return;
	if (event.key === " " && event.target.closest?.("button, a, summary"))
		return;
	const actions = {
		"?": help, t: nextTheme, n: () => startSession(), g: () => (location.hash = "#/"), r: () => (location.hash = "#/runs"),
	};
	if (page?.key?.(event.key) || (actions[event.key] && (actions[event.key](), true)))
		event.preventDefault();
}

theme(localStorage.getItem(THEME_KEY) ?? "system");
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
	theme(localStorage.getItem(THEME_KEY) ?? "system");
	themeButton();
});
build();
themeButton();
listeners.unauthorized = askToken;
store.listen("sessions", tabs);
store.listen("status", () => {
	tabs();
	title();
});
store.listen("connection", connection);
store.listen("capabilities", ({role}) => {
	text(header.role, role ? `role ${role}` : "");
	header.start.hidden = !store.may("operate");
	title();
});
setInterval(connection, 1000);
addEventListener("hashchange", route);
addEventListener("keydown", keys);
route();
connection();
store.start();
