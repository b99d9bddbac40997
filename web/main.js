// main.js - the page as a whole: header, theme, which view is shown, keys, what is said while the connection is lost.

import {listeners} from "./api.js";
import {askToken, help} from "./dialogs.js";
import {h, icon, replace, text} from "./dom.js";
import {clock, count, duration, visible} from "./format.js";
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
	tabs: h("nav.tabs", {"aria-label": "pages and sessions"}), menu: null,
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
		header.tabs, header.connection, header.role, header.start, header.theme, h("button.tool.question", {title: "keys (?)", "aria-label": "keys", onclick: help}, "?"));
}

// Sessions and Runs always stay in sight, and so does the session that is shown; those for which there is no room are in a menu.

const TAB_GAP = 2;

function tabLink(href, label, state, loss) {
	const here = location.hash === href || (href === "#/" && shown === "overview") || (href === "#/runs" && shown === "run");
	return h("a", {href, title: label, "aria-current": here ? "page" : undefined}, state && h("i", {class: `dot ${loss ? "bad" : state}`}), h("span.clip", label));
}

const sessionTab = ({name, state, crashed}) => tabLink(`#/session/${encodeURIComponent(name)}`, name, crashed ? "crashed" : state, lossOf(store.statuses.get(name)?.ledger?.total));

/** Which of the tabs fit in, by their widths: the one that is shown first. */
function fitting(links, room) {
	const order = [...links].sort((a, b) => b.hasAttribute("aria-current") - a.hasAttribute("aria-current"));
	const fit = new Set();
	for (const link of order) {
		room -= link.offsetWidth + TAB_GAP;
		if (room < 0)
			break;
		fit.add(link);
	}
	return fit;
}

function tabs() {
	const fixed = [tabLink("#/", "Sessions"), tabLink("#/runs", "Runs")], links = store.sessions.map(sessionTab);
	const key = [...fixed, ...links].map((each) => each.outerHTML).join() + header.tabs.clientWidth;
	if (key === offered)
		return;
	offered = key;
	const open = header.menu?.open, more = h("summary", {title: "all sessions"}, h("span", `${links.length} more`), icon("more"));
	header.menu = h("details.more", more);
	replace(header.tabs, fixed, links, header.menu);
	const taken = fixed.reduce((sum, each) => sum + each.offsetWidth + TAB_GAP, 0), room = header.tabs.clientWidth - taken;
	let fit = fitting(links, room);
	if (fit.size < links.length)
		fit = fitting(links, room - header.menu.offsetWidth - TAB_GAP);
	const rest = links.filter((each) => !fit.has(each));
	for (const each of rest)
		each.remove();
	if (rest.length)
		header.menu.append(h("div.menu", rest));
	else
		header.menu.remove();
	const worst = rest.some((each) => each.querySelector(".dot.bad, .dot.crashed, .dot.fault"));
	replace(more, worst && h("i.dot.bad"), h("span", fit.size ? `${rest.length} more` : `${rest.length} session${rest.length === 1 ? "" : "s"}`), icon("more"));
	header.menu.open = Boolean(open);
}

function closeMenu(event) {
	if (header.menu?.open && (event.type === "hashchange" || event.key === "Escape" || (event.type === "pointerdown" && !header.menu.contains(event.target))))
		header.menu.open = false;
}

function title() {
	const name = shown === "session" ? page.name : null;
	const status = name && store.statuses.get(name);
	const loss = status ? lossOf(status.ledger.total) : 0;
	const lost = store.connection.state === "lost" ? "(no connection) " : loss ? `\u26a0 ${count(loss)} lost \u2013 ` : "";
	document.title = lost + (name ? `${visible(name)}${status ? ` ${status.state}` : ""} \u2013 Sluice` : "Sluice");
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
new ResizeObserver(tabs).observe(header.tabs);
setInterval(connection, 1000);
addEventListener("hashchange", closeMenu);
addEventListener("hashchange", route);
addEventListener("pointerdown", closeMenu);
addEventListener("keydown", closeMenu);
addEventListener("keydown", keys);
route();
connection();
store.start();
