// details.js - the parts of a run behind the headlines: sources, link, unit and sinks, disk, threads, metadata.

import {h, replace} from "./dom.js";
import {count, duration, nanoseconds, quantity} from "./format.js";

const words = (name) => name.replaceAll("_", " ");
/** Figures of add-ons of which the name alone says little. */
const FIGURES = {
	longest_put_us: "longest time for one frame", stalls: "frames that took more than 1 s", followers_ever: "followers so far", rows_durable: "frames safe on disk", bytes_stored: "bytes on disk",
	published: "images published", skipped: "left out by rate",
};

function figure([name, value]) {
	const [, stem, unit] = /^(.*)_(us|ns|ms)$/.exec(name) ?? [], factor = {us: 1e3, ns: 1, ms: 1e6}[unit];
	return [FIGURES[name] ?? words(stem ?? name), unit ? nanoseconds(value * factor) : name.includes("bytes") ? quantity(value, "B") : count(value)];
}

function table(head, rows) {
	return h("div.scroll", h("table", h("thead", h("tr", head.map((name) => h("th", {scope: "col"}, name)))), h("tbody", rows)));
}

function pairs(list) {
	return h("dl.pairs", list.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) => [h("dt", name), h("dd", value)]));
}

function sources({modules, alive, gone, one_way: oneWay}) {
	const seldom = ["turned_away", "returns"].filter((key) => modules.some((module) => module[key]));
	const rows = modules.map((module, i) => h("tr", {class: module.state === "gone" ? "lit" : ""}, h("th", {scope: "row"}, `module ${i}`), h("td", h("span", {class: `dot ${module.state === "gone" ? "bad" : module.state === "running" ? "good" : ""}`}), module.state),
		h("td", count(module.reached)), h("td", module.offered === null ? "\u2013" : count(module.offered)), seldom.map((key) => h("td", {class: module[key] ? "warn" : "zero"}, count(module[key])))));
	return [h("p.dim", `${alive} here${gone ? `, ${gone} gone` : ""}${oneWay ? "; they hear nothing from us" : ""}`), table(["", "state", "reached", "offered", ...seldom.map(words)], rows)];
}

function link(link) {
	const dropped = Object.entries(link.dropped);
	return [pairs([["kind", link.kind], ["guard", link.guard], ["proof", link.proof], ["packets", count(link.packets)], ["bytes", quantity(link.bytes, "B")], ["receive buffer", link.receive_buffer_bytes ? quantity(link.receive_buffer_bytes, "B") : null], ["congestion marks", link.marked ? count(link.marked) : null]]),
		dropped.length ? table(["packets dropped", ""], dropped.map(([name, n]) => h("tr.warm", h("th", {scope: "row"}, words(name)), h("td", count(n))))) : h("p.dim", "no packet was dropped")];
}

function addon(addon) {
	const figures = Object.entries(addon.figures).filter(([, value]) => value).map(figure);
	const pace = addon.pace, slow = pace && (pace.left_out || pace.factor > 1);
	return h("article", {class: `addon ${addon.error ? "lit" : ""}`}, h("h3", addon.name, " ", h("span.dim", addon.kind === "unit" ? "unit" : addon.required ? "required sink" : "sink"), addon.where && h("code", addon.where)),
		addon.error && h("p.bad", addon.error), slow && h("p.warn", `left out ${count(pace.left_out)} frames to keep pace${pace.factor > 1 ? `; one of ${pace.factor} is given to it now` : ""}`), figures.length ? pairs(figures) : null);
}

function disk(forecast) {
	return table(["file system", "free", "needed", "frames that fit"], forecast.map((each) => h("tr", {class: each.fits === false ? "lit" : ""}, h("th", {scope: "row"}, h("code", each.path)), h("td", quantity(each.free_bytes, "B")),
		h("td", each.needed_bytes === null ? "no known end" : quantity(each.needed_bytes, "B")), h("td", each.frames_fit === null ? "\u2013" : count(each.frames_fit)))));
}

function threads(status) {
	const {threads} = status;
	const ages = threads.progress.map(({age_ns}) => age_ns).filter((age) => age !== null), least = Math.min(...ages);
	return [pairs([["threads of the link", count(threads.pollers)], ["workers", count(threads.workers)], ["polling", threads.polling], ["cpus", threads.cpus.length ? threads.cpus.join(", ") : threads.crowded ? "not pinned: fewer cpus than threads" : "not pinned"]]),
		table(["thread", "last progress"], threads.progress.map(({name, age_ns}) => h("tr", {class: status.state === "running" && age_ns !== null && age_ns - least > 5e9 ? "warm" : ""}, h("th", {scope: "row"}, name), h("td", age_ns === null ? "\u2013" : age_ns < 1e9 ? `${nanoseconds(age_ns)} ago` : `${duration(age_ns / 1e9)} ago`))))];
}

const SECTIONS = [
	["sources", (status) => status.sources.modules.length && sources(status.sources)], ["link", (status) => link(status.link)],
	["unit and sinks", (status) => status.addons.map(addon)], ["disk", (status) => status.forecast.length && disk(status.forecast)],
	["threads", threads], ["metadata", (status) => Object.keys(status.metadata).length && pairs(Object.entries(status.metadata))],
];

export class Details {
	constructor() {
		this.sections = SECTIONS.map(([name, make]) => {
			const body = h("div.detail-body");
			return {name, make, body, element: h("details.panel.detail", {ontoggle: () => this.show(this.status)}, h("summary", h("h2", name), h("span.hint-line")), body)};
		});
		this.element = h("div.details", this.sections.map(({element}) => element));
	}

	/** What stands beside the name while a section is closed: what is wrong, or a number. */
	line(name, status) {
		if (name === "sources")
			return status.sources.gone ? `${status.sources.gone} gone` : `${status.sources.alive} of ${status.sources.modules.length}`;
		if (name === "link")
			return `${status.link.kind ?? ""} ${Object.keys(status.link.dropped).length ? `\u00b7 dropped ${count(Object.values(status.link.dropped).reduce((a, b) => a + b, 0))}` : ""}`;
		if (name === "unit and sinks")
			return status.addons.some(({error}) => error) ? "an error" : status.addons.map(({name}) => name).join(", ");
		if (name === "disk")
			return status.forecast.some(({fits}) => fits === false) ? "too little space" : "";
		return "";
	}

	show(status) {
		this.status = status;
		if (!status)
			return;
		for (const {name, make, body, element} of this.sections) {
			const content = make(status);
			element.hidden = !content;
			const line = this.line(name, status);
			const bad = /gone|error|too little|dropped/.test(line);
			element.querySelector(".hint-line").textContent = line;
			element.querySelector(".hint-line").className = `hint-line ${bad ? "warn" : "dim"}`;
			if (content && element.open)
				replace(body, content);
		}
	}
}
