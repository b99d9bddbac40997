// runs.js - the history: a picture of each run, its result, and a page with all that is known of it.

import * as api from "./api.js";
import {dialog} from "./dialogs.js";
import {h, icon, replace, text} from "./dom.js";
import {count, duration, fileName, moment, percent, plural, quantity, sentence} from "./format.js";
import {Hops} from "./hops.js";
import {thumbnail} from "./imagepanel.js";
import {Ledger} from "./ledger.js";
import {tickText} from "./scale.js";
import {store} from "./store.js";
import {addLedgers, bytesOfAll, ofResult} from "./transfers.js";
import {RESULTS, lossOf} from "./words.js";

const PAGE = 24;

/** Milliseconds since 1970 of what the service says: nanoseconds, or a text. */
const time = (value) => (typeof value === "number" ? value / 1e6 : Date.parse(value ?? ""));
const resultOf = (run) => (run.state === "live" || run.state === "crashed" ? run.state : run.result ?? "error");

export function pill(result) {
	const [tone, words] = RESULTS[result] ?? ["", ""];
	return h("span", {class: `pill ${tone || "plain"}`, title: words}, result);
}

/** Pictures are asked for when they come into sight. */
const sight = new IntersectionObserver((entries) => {
	for (const {isIntersecting, target} of entries)
		if (isIntersecting) {
			sight.unobserve(target);
			thumbnail(target, target.dataset.path).catch(() => (target.classList.add("none"), target.absent?.()));
		}
}, {rootMargin: "200px"});

/** absent(): there is none. */
function picture(path, absent) {
	const canvas = h("canvas.picture", {"data-path": path, role: "img", "aria-label": "picture of the run"});
	canvas.absent = absent;
	sight.observe(canvas);
	return canvas;
}

export function card(run) {
	const began = time(run.started), ended = time(run.ended);
	return h("a", {class: `run-card panel ${RESULTS[resultOf(run)]?.[0] ?? ""}`, href: `#/run/${run.run}`},
		h("div.frame", run.picture ? picture(`runs/${run.run}/picture.png`) : h("span.no-picture", run.state === "live" ? "live" : "no picture")),
		h("div.run-text", h("div.line", h("b", `run ${run.run}`), h("span.spring"), pill(resultOf(run))), h("div.dim.clip", fileName(run.experiment)),
			run.frames !== null && h("div.dim", plural(run.frames ?? 0, "frame"), run.transfers > 1 ? ` of ${run.transfers} transfers` : "", Number.isFinite(ended - began) ? ` in ${duration((ended - began) / 1000)}` : ""), h("div.dim", moment(began)), run.lost + run.damaged > 0 && h("div.bad", `${count(run.lost + run.damaged)} lost or damaged`)));
}

export class RunsPage {
	constructor() {
		this.list = h("div.gallery");
		this.more = h("button.button", {hidden: true, onclick: () => this.load()}, "Earlier runs");
		this.element = h("div.runs", h("h1", "Runs"), this.list, h("p", this.more));
		this.ends = [store.listen("run", () => this.again()), store.listen("connection", ({state}) => state === "live" && this.again())];
		this.again();
	}

	close() {
		for (const end of this.ends)
			end();
	}

	again() {
		this.last = undefined;
		this.load();
	}

	async load() {
		const first = this.last === undefined;
		try {
			const {runs} = await api.get(`runs?limit=${PAGE}${first ? "" : `&before=${this.last}`}`);
			if (first)
				replace(this.list, runs.length ? null : empty());
			this.list.append(...runs.map(card));
			this.last = runs.at(-1)?.run;
			this.more.hidden = runs.length < PAGE;
		} catch (error) {
			if (first)
				replace(this.list, h("p.dim", error.message));
		}
	}
}

export function empty() {
	return h("div.empty", icon("play"), h("p", "No run yet."), h("p.dim", "Every run that is started here stays in this list, with a picture of it."));
}

/** A cause that explain found: its sentence, the numbers behind it, what to do. */
const finding = ({sentence, proof, advice, command}) => h("article.cause", h("p.said", sentence), h("dl.pairs", proof.map(({name, value, unit}) => [h("dt", name.replaceAll("_", " ")), h("dd", unit === "bytes" ? quantity(value, "B") : `${tickText(value)} ${unit}`)])),
	h("p.hint", h("b", "What to do: "), advice), command && h("pre", h("code", command)));

/** What `sluice explain` says of a run or of a session, as elements; a run with transfers has an explanation for each. path: "runs/3",
 *  "sessions/NAME"; folder: of the run, for the command that says it on its host. */
export async function explanation(path, folder) {
	try {
		const said = await api.get(`${path}/explain`);
		return (said.transfers ?? [said]).map((one) => [one.transfer && h("h3", one.transfer), !one.lost && !one.unclosed ? h("p", "Nothing was lost.") : one.causes.length ? one.causes.slice(0, 3).map(finding) : h("p", `The cause is not known. Looked at: ${one.looked_at}.`),
			one.lost > 0 && !one.has_flight && h("p.dim", "There is no flight record: this is what the ledger alone says.")]);
	} catch (error) {
		return [h("p", error.status === 404 ? "This service has no explanation of this run." : sentence(error.message)), folder ? [h("p", "On its host this command explains it:"), h("pre", h("code", `sluice explain ${folder}`))] :
			h("p.dim", "The run has no folder that could be read.")];
	}
}

/** Transfers of a run, a row each, and what can be added up. Rows are made once: a link in them can be clicked while numbers change. */
export class TransferTable {
	constructor() {
		this.body = h("tbody");
		this.element = h("table.transfers", h("thead", h("tr", ["", "frames", "kept", "frames/s", "data", "lost or damaged", ""].map((name) => h("th", {scope: "col"}, name)))), this.body);
	}

	/** parts: of transfers.js. */
	show(parts) {
		const key = parts.map(({name, session}) => `${name} ${session}`).join();
		if (key !== this.key)
			this.build(parts);
		this.key = key;
		const data = (bytes) => (Number.isFinite(bytes) ? quantity(bytes, "B/s") : "\u2013");
		parts.forEach(({frames, kept, framesPerS, bytesPerS, ledger, result}, i) => this.fill(this.rows[i], [count(frames), count(kept), Number.isFinite(framesPerS) ? quantity(framesPerS) : "\u2013", data(bytesPerS)], lossOf(ledger.total), result));
		this.fill(this.rows.at(-1), ["", "", "", data(bytesOfAll(parts))], lossOf(addLedgers(parts).total), "");
	}

	build(parts) {
		this.rows = [...parts, {name: "together"}].map(({name, session}) => {
			const cells = Array.from({length: 5}, () => h("td")), last = h("td");
			return {cells, last, element: h("tr", h("th", {scope: "row"}, session ? h("a", {href: `#/session/${encodeURIComponent(session)}`}, name) : name), cells, last)};
		});
		replace(this.body, this.rows.map(({element}) => element));
	}

	fill(row, values, loss, result) {
		[...values, count(loss)].forEach((value, i) => text(row.cells[i], value));
		row.element.className = loss ? "lit" : "";
		if (result !== row.result)
			replace(row.last, result ? pill(result) : "");
		row.result = result;
	}
}

/** What the files of a crashed run held, as the service has recovered it; an element. */
export function recovery({recovered, state, folder}) {
	if (state !== "crashed")
		return h("span");
	if (!recovered)
		return h("p.dim", "Its files are being recovered, one run after the other: what they held is said here then.");
	if (!recovered.files.length)
		return h("p.dim", "No file of this run had to be recovered: it has none with frames.");
	return h("div.recovery", h("h3", "Recovered files"), h("ul", recovered.files.map((file) => h("li", h("code", `${folder}/${file.file}`), h("span", {class: file.recovered ? "good" : "bad"}, file.recovered ? " recovered: " : " not recovered: "), file.said))));
}

/** What is known of a run, as names and values, without those that are not known. */
export function runFacts(run) {
	const began = time(run.started), ended = time(run.ended), {settled, kept} = run.frames ?? {}, crashed = run.state === "crashed";
	return [["experiment", fileName(run.origin?.file ?? run.experiment ?? run.file)], ["began", Number.isFinite(began) && moment(began)], [crashed ? "last write" : "took", ended > began && (crashed ? `${duration((ended - began) / 1000)} later` : duration((ended - began) / 1000))],
		...Object.entries(run.transfers ?? {}).map(([name, one]) => [`sinks of ${name}`, one?.sinks?.map((sink) => sink.name).join(", ")]), ["frames", Number.isFinite(settled ?? run.frames) && count(settled ?? run.frames)], ["kept", settled > 0 && `${count(kept)} (${percent(kept, settled)})`],
		["rate", run.rates?.frames_per_s && `${quantity(run.rates.frames_per_s)} frames/s, ${quantity(run.rates.GB_per_s * 1e9, "B/s")}`], ["link", run.link?.kind], ["sinks", run.sinks?.map(({name}) => name).join(", ")], ["folder", run.folder], ["ended early", run.ended_early], ...Object.entries(run.metadata ?? {})].filter(([, value]) => value);
}

export class RunPage {
	constructor(number) {
		this.number = number;
		this.body = h("div", h("p.waiting", "Reading the run\u2026"));
		this.element = h("div.run", this.body);
		this.hops = [];
		this.ends = [store.listen("connection", ({state}) => state === "live" && this.load()), store.listen("run", () => this.load())];
		this.load();
	}

	close() {
		for (const hops of this.hops)
			hops.close();
		for (const end of this.ends)
			end();
	}

	async load() {
		try {
			this.show(await api.get(`runs/${this.number}`));
		} catch (error) {
			replace(this.body, h("p.waiting", error.status === 404 ? `There is no run ${this.number} in this root. ` : `${error.message} `, h("a", {href: "#/runs"}, "All runs")));
		}
	}

	/** run: its result.json, or its row in the list while there is none. */
	show(run) {
		for (const hops of this.hops.splice(0))
			hops.close();
		const transfers = Object.entries(run.transfers ?? {}).filter(([, one]) => one?.ledger), parts = transfers.map(ofResult), whole = parts.length ? addLedgers(parts) : run.ledger;
		const result = resultOf(run), ledger = whole && new Ledger(() => this.explain()), table = parts.length > 0 && new TransferTable();
		ledger?.show(whole, true);
		if (table)
			table.show(parts);
		const charts = (parts.length ? transfers : [["", run]]).map(([name, one]) => this.chart(name, one.latency_us));
		this.folder = run.folder;
		const crashed = run.state === "crashed", live = run.state === "live";
		replace(this.body, h("div.line", h("h1", `Run ${this.number}`), pill(result), h("span.dim", RESULTS[result]?.[1] ?? ""), h("span.spring"), h("a.button", {href: "#/runs"}, "All runs")),
			run.error && h("div.problem", icon("warning"), h("div", h("b", `${run.error.message} `), run.error.where && h("code", run.error.where), run.error.hint && ` ${run.error.hint}`)),
			crashed && h("div.problem", icon("warning"), h("div", h("b", "The process of this run ended without closing it. "), "There is no ledger: what it counted was in its memory. ", recovery(run))),
			h("div.columns", h("div.column", this.pictureOf(run, live), this.texts(crashed, transfers.map(([name]) => name))),
				h("div.column", h("section.panel", h("dl.pairs", runFacts(run).map(([name, value]) => [h("dt", name), h("dd", String(value))]))), table && h("section.panel", h("div.panel-head", h("h2", "Transfers")), h("div.scroll", table.element)), ledger?.element, charts)));
	}

	/** Latencies of the run, or of one of its transfers. */
	chart(name, latency) {
		const hops = Object.entries(latency ?? {}).map(([hop, us]) => [hop, {count: us.count, p50: 1e3 * us.p50, p99: 1e3 * us.p99, max: 1e3 * us.max}]);
		if (!hops.length)
			return null;
		const chart = new Hops();
		this.hops.push(chart);
		chart.set(Object.fromEntries(hops));
		return h("section.panel.chart.hops", h("div.panel-head", h("h2", name ? `Latency by hop, ${name}` : "Latency by hop")), chart.box);
	}

	pictureOf(run, live) {
		const place = h("section.panel.big-picture");
		const without = (words) => replace(place, h("p.waiting", words));
		if (live)
			without("The picture of this run is made at its end.");
		else if (run.picture === false)
			without("This run has no picture: no image of it is in its files.");
		else
			place.append(picture(`runs/${this.number}/picture.png`, () => without("This run has no picture: no image of it is in its files.")));
		return place;
	}

	/** Log and experiment, of each transfer where there are several, read when they are opened. */
	texts(open, transfers) {
		const experiments = transfers.length ? transfers.map((name) => [`experiment of ${name}`, `experiment?transfer=${encodeURIComponent(name)}`]) : [["experiment", "experiment"]];
		return [["log", "log"], ...experiments].map(([title, path]) => {
			const body = h("pre.detail-body", "\u2026");
			return h("details.panel.detail", {open: open && path === "log", ontoggle: async (event) => {
				if (event.target.open)
					text(body, await api.textOf(`runs/${this.number}/${path}`).catch((error) => error.message));
			}}, h("summary", h("h2", title)), body);
		});
	}

	async explain() {
		dialog(`Why did run ${this.number} lose frames?`, await explanation(`runs/${this.number}`, this.folder), {wide: true});
	}
}

