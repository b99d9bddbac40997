// overview.js - the first page: sessions with a small live picture each, experiments to start, the newest runs.

import * as api from "./api.js";
import {limits, paint, sample} from "./colour.js";
import {h, icon, replace, text} from "./dom.js";
import {count, dotted, duration, fileName, percent, quantity} from "./format.js";
import {OLD_S, thumbnail} from "./imagepanel.js";
import {card as runCard, empty as noRuns} from "./runs.js";
import {parseSlim} from "./slim.js";
import {choice, startSession} from "./start.js";
import {store} from "./store.js";
import {STATES, lossOf} from "./words.js";

const EVERY_MS = 2000, RECENT = 8;

/** A session as a card: its picture follows the run every two seconds. */
class Card {
	constructor(name) {
		this.name = name;
		this.canvas = h("canvas.picture", {role: "img", "aria-label": `newest image of ${name}`});
		this.age = h("span.age");
		this.pill = h("span.pill");
		this.about = h("div.dim.clip");
		this.bar = h("div.progress", h("i"));
		this.numbers = h("div.numbers");
		this.frame = h("div.frame", h("span.no-picture", "no image"), this.canvas, this.age);
		this.element = h("a.session-card.panel", {href: `#/session/${encodeURIComponent(name)}`}, this.frame, h("div.run-text", h("div.line", h("b.clip", name), h("span.spring"), this.pill), this.about, this.bar, this.numbers));
		this.frame.classList.add("none");
		this.keep();
	}

	close() {
		this.closed = true;
		clearTimeout(this.timer);
	}

	async keep() {
		if (!document.hidden && store.connection.state === "live" && !store.session(this.name)?.crashed)
			await this.look().catch(() => this.past()).catch(() => {});
		this.show();
		if (!this.closed)
			this.timer = setTimeout(() => this.keep(), EVERY_MS);
	}

	async look() {
		const query = `bin=${this.bin ?? 8}&wait_ms=0${this.newest === undefined ? "" : `&after=${this.newest}`}`;
		const body = await api.bytesOf(api.session(this.name, `image?${query}`));
		if (!body || this.closed)
			return;
		const {header, pixels} = parseSlim(body);
		this.newest = header.element ?? header.n;
		this.bin = Math.max(1, Math.round(Math.max(header.full_columns, header.full_rows) / 360));
		this.taken = performance.now() - (header.age_ns ?? 0) / 1e6;
		Object.assign(this.canvas, {width: header.columns, height: header.rows});
		const pen = this.canvas.getContext("2d"), data = pen.createImageData(header.columns, header.rows);
		const range = limits(sample(pixels, header.invalid, header.columns), {range: "percentile", percentile: 99.9});
		paint(pixels, header.invalid, {...range, log: true, map: "inferno", fractions: header.type.includes("f")}, [58, 64, 72], new Uint32Array(data.data.buffer));
		pen.putImageData(data, 0, 0);
		this.frame.classList.remove("none");
	}

	/** Without a live image: the picture of the last run, where our history has one. */
	async past() {
		const session = store.session(this.name), run = ["ended", "configured"].includes(session?.state) ? store.runOf(session) : 0;
		if (!run || run === this.pastRun || this.closed)
			return;
		await thumbnail(this.canvas, `runs/${run}/picture.png`);
		this.pastRun = run;
		this.frame.classList.remove("none");
	}

	show() {
		const session = store.session(this.name), status = store.statuses.get(this.name);
		const state = session?.crashed ? "crashed" : status?.state ?? session?.state ?? "idle";
		text(this.pill, state);
		this.pill.className = `pill ${state}`;
		this.pill.title = STATES[state] ?? "";
		const age = this.taken === undefined ? null : (performance.now() - this.taken) / 1000;
		text(this.age, age === null ? "" : `${duration(age)} old`);
		const calm = ["paused", "ended", "configured", "fault"].includes(state);
		this.age.className = `age ${age > OLD_S + EVERY_MS / 1000 ? "old" : "fresh"} ${calm ? "calm" : ""}`;
		this.frame.classList.toggle("old", age > OLD_S + EVERY_MS / 1000);
		text(this.about, dotted(fileName(session?.experiment ?? status?.experiment), status?.run && `${state === "configured" && status.ended_unix_ns ? "last run" : "run"} ${status.run}`));
		if (!status)
			return;
		const {settled, expected} = status.frames, loss = lossOf(status.ledger.total);
		this.bar.classList.toggle("endless", !expected && state === "running");
		this.bar.firstChild.style.width = `${expected ? (100 * settled) / expected : 0}%`;
		const words = state === "configured" && !settled ? "no run yet" : dotted(expected ? `${percent(settled, expected)} of ${count(expected)}` : `${count(settled)} frames`, state === "running" && status.rates && `${quantity(status.rates.frames_per_s)} frames/s`);
		const key = words + loss;
		if (key !== this.key)
			replace(this.numbers, h("span", words), loss ? h("b.bad", `${count(loss)} lost or damaged`) : h("span.good", settled ? "nothing lost" : ""));
		this.key = key;
	}
}

export class OverviewPage {
	constructor() {
		this.cards = new Map();
		this.list = h("div.gallery.sessions");
		this.experiments = h("ul.choices");
		this.hostLine = h("p.dim");
		this.recent = h("div.gallery");
		this.element = h("div.overview", h("div.line.wrap", h("h1", "Sessions"), h("span.spring"), this.hostLine), this.list,
			h("div.line", h("h2", "Experiments")), this.experiments, h("div.line", h("h2", "Newest runs"), h("span.spring"), h("a", {href: "#/runs"}, "all runs")), this.recent);
		this.ends = [store.listen("sessions", () => this.update()), store.listen("status", ({session}) => this.cards.get(session)?.show()), store.listen("run", () => this.runs()), store.listen("capabilities", () => this.load())];
		this.update();
		this.load();
	}

	close() {
		for (const end of [...this.ends, ...[...this.cards.values()].map((each) => () => each.close())])
			end();
	}

	update() {
		const names = store.sessions.map(({name}) => name);
		for (const [name, each] of [...this.cards])
			if (!names.includes(name)) {
				each.close();
				this.cards.delete(name);
			}
		for (const name of names)
			if (!this.cards.has(name))
				this.cards.set(name, new Card(name));
		if (names.length) {
			const wanted = names.map((name) => this.cards.get(name).element);
			if (wanted.length !== this.list.childElementCount || wanted.some((element, i) => this.list.children[i] !== element))
				replace(this.list, wanted);
		} else if (store.capabilities) {
			replace(this.list, h("div.empty.panel", icon("play"), h("p", "No session is running."), h("p.dim", store.may("operate") ? "Start one of the experiments below." : `Your role is ${store.role()}: starting needs operate. Sessions that others start appear here.`)));
		}
		for (const each of this.cards.values())
			each.show();
	}

	load() {
		const info = store.capabilities;
		if (!info)
			return;
		text(this.hostLine, dotted(info.host, info.cpus && `${info.cpus.length ?? info.cpus} cpus`, info.memory && `${quantity(info.memory.available_bytes, "B")} of ${quantity(info.memory.total_bytes, "B")} memory free`, info.version && `Sluice ${info.version}`));
		this.files();
		this.runs();
		this.update();
	}

	async files() {
		try {
			const {experiments} = await api.get("experiments");
			replace(this.experiments, experiments.length ? experiments.map((each) => choice(each, () => startSession(each.name))) : h("li.dim", "No experiment file: put a file NAME.yaml into the folder that the service was started with (--experiments)."));
		} catch (error) {
			replace(this.experiments, h("li.dim", error.message));
		}
	}

	async runs() {
		try {
			const {runs} = await api.get(`runs?limit=${RECENT}`);
			const over = runs.filter(({state}) => state !== "live");
			replace(this.recent, over.length ? over.map(runCard) : noRuns());
		} catch (error) {
			replace(this.recent, h("p.dim", error.message));
		}
	}
}
