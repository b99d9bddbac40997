// session.js - the page of one session: state and progress, live image, ledger, plots, details; start, pause, stop.

import * as api from "./api.js";
import {Details} from "./details.js";
import {confirmed, dialog, failed} from "./dialogs.js";
import {h, icon, replace, text} from "./dom.js";
import {count, digits, dotted, duration, fileName, moment, nanoseconds, percent, quantity, scaled} from "./format.js";
import {wholeHop} from "./history.js";
import {Hops} from "./hops.js";
import {ImagePanel} from "./imagepanel.js";
import {Ledger} from "./ledger.js";
import {Plot} from "./plot.js";
import {Results} from "./results.js";
import {TransferTable, explanation, recovery, runFacts} from "./runs.js";
import {startAgain} from "./start.js";
import {store} from "./store.js";
import {ofStatus, siblings} from "./transfers.js";
import {HOPS, STATES, lossOf} from "./words.js";

const SPAN_S = 120;
const si = (unit) => (value) => quantity(value, unit);
const perCent = (value) => `${digits(value)}\u00a0%`;

function tile(label, title = "") {
	const value = h("b"), unit = h("span.unit"), note = h("small");
	return {element: h("div.tile", {title}, h("span.label", label), h("span.value", value, unit), note), set(words, suffix = "", below = "", tone = "") {
		text(value, words);
		text(unit, suffix);
		text(note, below);
		this.element.className = `tile ${tone}`;
	}};
}

/** The session is ready for its next run, and its numbers are those of the last one. */
const isBefore = (status) => Boolean(status && status.ended_unix_ns && ["idle", "configured", "fault"].includes(status.state));

/** What a session can be told, in which states; the last one also when it has crashed. */
const COMMANDS = [
	{verb: "start", label: "Start", picture: "play", tone: "primary", key: "s", states: ["configured", "armed"], hint: "start a run (s)"},
	{verb: "start", label: "Start again", picture: "play", tone: "primary", key: "s", states: ["ended"], hint: "start another run (s)"},
	{verb: "configure", label: "Configure", tone: "primary", states: ["fault"], hint: "read the experiment again"},
	{verb: "pause", label: "Pause", picture: "pause", tone: "", key: "p", states: ["running"], hint: "give no more credits from the next frame on (p)"},
	{verb: "resume", label: "Resume", picture: "play", tone: "primary", key: "p", states: ["paused"], hint: "give credits again (p)"},
	{verb: "stop", label: "Stop", picture: "stop", tone: "danger", key: "x", states: ["armed", "running", "paused"], hint: "ask the sources to end; what they sent is processed and stored (x)"},
	{verb: "abort", label: "Abort", picture: "stop", tone: "danger", states: ["stopping"], hint: "end without waiting for the sources"},
	{verb: "remove", label: "Close", picture: "close", tone: "", states: ["idle", "configured", "ended", "fault"], hint: "end this session; its runs stay"},
];

const panel = (title, content, note = "", more = "") => h("section", {class: `panel ${more}`, "aria-label": title}, h("div.panel-head", h("h2", title), h("span.spring"), note), content);

export class SessionPage {
	constructor(name) {
		this.name = name;
		this.build();
		this.ends = ["status", "sessions", "connection", "capabilities"].map((event) => store.listen(event, (detail) => (detail.session ?? name) === name && this.update()));
		this.update();
	}

	close() {
		for (const end of this.ends)
			end();
		for (const part of [this.image, this.results, this.hops, ...Object.values(this.plots)])
			part.close();
	}

	// ---- what there is ----

	build() {
		this.image = new ImagePanel(this.name);
		this.results = new Results(this.name);
		this.ledger = new Ledger(() => this.explain());
		this.hops = new Hops();
		this.details = new Details();
		this.plots = {
			rate: new Plot({label: "frames per second", time: true, floor: 1, format: si(""), series: [{name: "frames/s", colour: "s1", fill: true}]}),
			bytes: new Plot({label: "data rate", time: true, floor: 1, format: si("B/s"), series: [{name: "pixels", colour: "s2", fill: true}]}),
			hits: new Plot({label: "hit rate", time: true, floor: 1, format: perCent, series: [{name: "kept", colour: "s3", fill: true}]}),
			queues: new Plot({label: "queue fill", time: true, max: 100, format: perCent, series: [{name: "ring", colour: "s1"}, {name: "unit", colour: "s2"}, {name: "sinks", colour: "s4"}]}),
			latency: new Plot({label: "latency", time: true, log: true, format: nanoseconds, series: [{name: "99th percentile", colour: "s4"}, {name: "median", colour: "s1"}, {name: "mean now", colour: "s2"}]}),
		};
		this.tiles = {frames: tile("frames/s"), bytes: tile("data"), hits: tile("hit rate", "frames kept, of those of the last two seconds, or of the run where there are none"), lost: tile("lost or damaged", "module-frames"), ring: tile("ring", "slots in use"), latency: tile("latency p99, whole run")};
		this.pill = h("span.pill", {role: "status"});
		this.about = h("span.about.dim");
		this.buttons = h("div.buttons");
		this.progress = h("div.progress", {role: "progressbar", "aria-label": "progress"}, h("i"));
		this.far = h("span.far");
		this.known = h("section.panel.known", {hidden: true});
		this.problem = h("div.problem", {role: "alert", hidden: true});
		this.transfers = new TransferTable();
		this.together = panel("Transfers of this run", h("div.scroll", this.transfers.element), h("span.dim", "this page is of one of them"));
		this.together.hidden = true;
		const small = (title, plot) => panel(title, plot.box, plot.legend, "chart");
		this.element = h("div.session",
			h("section.strip.panel", h("div.line", h("h1", this.name), this.pill, this.about, h("span.spring"), this.buttons), h("div.line", this.progress, this.far)),
			this.problem, this.known, h("div.tiles", Object.values(this.tiles).map(({element}) => element)), this.together,
			h("div.columns",
				h("div.column", this.image.element, this.results.element, panel("Latency by hop", this.hops.box, h("span.dim", "median to 99th percentile, line to the longest"), "chart hops grow")),
				h("div.column", this.ledger.element, h("div.charts", small("Frames", this.plots.rate), small("Data rate", this.plots.bytes), small("Hit rate", this.plots.hits), small("Queue fill", this.plots.queues)),
					panel("Latency of a frame", this.plots.latency.box, this.plots.latency.legend, "chart grow"))),
			this.details.element);
	}

	// ---- what it says ----

	update() {
		const session = store.session(this.name), status = store.statuses.get(this.name);
		this.headline(session, status);
		this.element.classList.toggle("bare", !status);
		this.element.classList.toggle("past", Boolean(!session || session.crashed));
		if (!status)
			return;
		const over = status.state === "ended" || isBefore(status);
		this.numbers(status, over);
		this.ledger.show(store.history(this.name).safe.apply(status.ledger), over);
		this.hops.set(status.latency_ns);
		this.details.show(status);
		this.lines();
		this.others(status);
	}

	/** A detector may send several transfers, each to a receiver of its own, which is a session. */
	others(status) {
		const parts = siblings(status, store.statuses.values()).map(ofStatus);
		this.together.hidden = !parts.length;
		if (parts.length)
			this.transfers.show(parts);
	}

	headline(session, status) {
		const state = !session ? (!store.listed ? "connecting" : store.before.has(this.name) ? "closed" : "unknown") : session.crashed ? "crashed" : status?.state ?? session.state ?? "idle";
		text(this.pill, state);
		this.pill.className = `pill ${state}`;
		this.pill.title = STATES[state] ?? "";
		text(this.about, dotted(fileName(session?.experiment ?? status?.experiment), status?.run && `${isBefore(status) ? "last " : ""}run ${status.run}`, status?.drained && "all that was sent is processed"));
		this.commands(session, state);
		this.trouble(session, state, status);
		if (status)
			this.travelled(status);
	}

	travelled(status) {
		const {settled, expected} = status.frames;
		const part = expected ? Math.min(1, settled / expected) : null;
		const ended = status.ended_unix_ns ?? status.taken_unix_ns;
		const elapsed = status.started_unix_ns ? (ended - status.started_unix_ns) / 1e9 : NaN;
		const rate = status.rates?.frames_per_s, left = part !== null && rate > 0 && status.state === "running" ? (expected - settled) / rate : NaN;
		this.progress.classList.toggle("endless", part === null && status.state === "running");
		this.progress.firstChild.style.width = `${100 * (part ?? 0)}%`;
		this.progress.setAttribute("aria-valuenow", String(Math.round(100 * (part ?? 0))));
		text(this.far, dotted(isBefore(status) && status.run && `run ${status.run}`, `${count(settled)}${expected ? ` of ${count(expected)}` : ""} frames`, part !== null && percent(settled, expected), Number.isFinite(elapsed) && duration(elapsed), left > 1 && `about ${duration(left)} left`));
	}

	/** What is wrong, and where the run is: in our history, or in a folder of another root. */
	trouble(session, state, status) {
		const lines = [], before = session ?? store.before.get(this.name), run = store.runOf(before);
		const history = run ? h("a", {href: `#/run/${run}`}, ` Run ${run}`) : before?.folder ? h("span", " The run is in ", h("code", before.folder)) : h("a", {href: "#/runs"}, " All runs");
		if (state === "closed")
			lines.push(h("b", "This session was closed. "), before.run ? h("span", "Its last run stays:", history) : h("span", "It had no run."));
		else if (state === "unknown")
			lines.push(h("b", `There is no session '${this.name}'. `), "It was closed before this page was opened, or it was never started.", h("a", {href: "#/"}, " All sessions"), h("a", {href: "#/runs"}, " All runs"));
		else if (session?.crashed)
			lines.push(h("b", "The session crashed: "), "its process ended without closing the run. ", ...this.saved(session, run), before.run ? history : "");
		else if (status?.error)
			lines.push(h("b", `${status.error.message} `), status.error.where && h("code", status.error.where), status.error.hint && h("span", ` ${status.error.hint}`));
		else if (status?.early && state === "ended")
			lines.push(h("b", "Ended early: "), status.early, status.stopped_by ? ` (${status.stopped_by})` : "");
		else if (status?.too_slow)
			lines.push(h("b", `The sink ${status.too_slow} could not keep pace`), " and ended the run (on_slow: stop).");
		const key = lines.map((line) => line?.textContent ?? line).join("");
		this.problem.hidden = !lines.length;
		this.problem.classList.toggle("mild", state === "unknown" || state === "closed" || Boolean(status?.early && !status.error && !session?.crashed && status.result === "intact"));
		if (key !== this.said) {
			this.said = key;
			replace(this.problem, icon("warning"), h("div", lines.filter(Boolean)));
		}
		this.rest(session, status);
	}

	/** What becomes of the files of a crashed session. */
	saved(session, run) {
		if (run)
			return ["The service recovers its files by itself."];
		return session.folder ? ["What its files hold can be saved on its host: ", h("code", `sluice recover ${session.folder}/FILE.nxs`), "."] : ["It had no run."];
	}

	/** Of a crashed session of which no status is known: what its registration says, and the row of its run. */
	async rest(session, status) {
		const bare = Boolean(session?.crashed && !status), run = store.runOf(session);
		this.known.hidden = !bare;
		if (!bare || this.looked === session.started_unix_ns)
			return;
		this.looked = session.started_unix_ns;
		const facts = [["experiment", session.experiment], ["began", moment(session.started_unix_ns / 1e6)], ["root of its runs", session.root], ["folder", session.folder]];
		const show = (more = []) => replace(this.known, h("dl.pairs", [...facts, ...more].filter(([, value]) => value).map(([name, value]) => [h("dt", name), h("dd", value)])));
		show();
		if (run)
			await api.get(`runs/${run}`).then((row) => (show(runFacts(row).filter(([name]) => !["began", "folder", "experiment"].includes(name))), this.known.append(recovery(row))), () => {});
	}

	numbers(status, over) {
		const {tiles} = this, history = store.history(this.name);
		const loss = lossOf(status.ledger.total), hop = wholeHop(status.latency_ns), {slots} = status.gauges;
		const seconds = over && status.started_unix_ns ? (status.ended_unix_ns - status.started_unix_ns) / 1e9 : NaN;
		const rate = over ? status.frames.settled / seconds : status.rates?.frames_per_s, bytes = over ? status.frames.pixel_bytes / seconds : status.rates?.bytes_per_s;
		tiles.frames.set(...scaled(rate ?? NaN), over ? "mean of the run" : store.session(this.name)?.crashed ? "before the crash" : "now");
		tiles.bytes.set(...scaled(bytes ?? NaN, "B/s"), `${quantity(status.frames.pixel_bytes, "B")} in all`);
		const recent = history.columns.hits.at(-1), hits = status.state === "running" && Number.isFinite(recent) ? recent : (100 * status.frames.kept) / status.frames.settled;
		tiles.hits.set(Number.isFinite(hits) ? digits(hits) : "\u2013", "%", `${count(status.frames.kept)} kept`);
		tiles.lost.set(count(loss), "", loss ? percent(loss, status.ledger.total.settled) : over ? (status.ledger.closed ? "ledger closed" : "ledger not closed") : "nothing so far", loss || (over && !status.ledger.closed) ? "bad" : "good");
		const full = slots.of && slots.now / slots.of > 0.9 && status.state === "running";
		tiles.ring.set(count(slots.now), slots.of ? `/ ${count(slots.of)}` : "", `most ${count(slots.most)}`, full ? "warn" : "");
		const [value, unit] = hop ? nanoseconds(status.latency_ns[hop].p99).split("\u00a0") : ["\u2013", ""];
		tiles.latency.set(value, unit, hop ? `median ${nanoseconds(status.latency_ns[hop].p50)}` : "");
		tiles.latency.element.title = hop ? HOPS[hop] : "";
	}

	lines() {
		const history = store.history(this.name), {columns} = history, span = history.span(SPAN_S);
		this.plots.rate.set(columns.t, [columns.frames], span);
		this.plots.bytes.set(columns.t, [columns.bytes], span);
		this.plots.hits.set(columns.t, [columns.hits], span);
		this.plots.queues.set(columns.t, [columns.slots, columns.unit, columns.sinks], span);
		this.plots.latency.set(columns.t, [columns.p99, columns.p50, columns.mean], span);
	}

	// ---- what it can be told ----

	commands(session, state) {
		const role = store.role(), idle = this.busy || store.connection.state !== "live";
		const key = `${state} ${role} ${idle} ${session?.crashed}`;
		if (key === this.offered)
			return;
		this.offered = key;
		const offers = !session ? [] : session.crashed ? [{...COMMANDS.at(-1), label: "Forget"}] : COMMANDS.filter(({states}) => states.includes(state));
		replace(this.buttons, session && !store.may("operate") ? h("span.dim.reason", `Your role is ${role}: starting and stopping needs operate.`) :
			offers.map(({verb, label, picture, tone, hint}) => h(`button.button.${tone || "plain"}`, {title: hint, disabled: idle, onclick: () => this.command(verb)}, picture && icon(picture), label)));
	}

	/** A key of the keyboard; whether it was one of ours. */
	key(key) {
		const state = store.statuses.get(this.name)?.state;
		const command = COMMANDS.find((each) => each.key === key && each.states.includes(state));
		if (!command || !store.may("operate") || store.connection.state !== "live")
			return this.image.key(key);
		this.command(command.verb, true);
		return true;
	}

	/** Do what a button or a key says. A stop by a key is asked for: it lies beside others. */
	async command(verb, typed) {
		if (verb === "start")
			return startAgain({...store.session(this.name), name: this.name});
		if ((verb === "stop" && typed && !(await confirmed("Stop this run?", "What the sources have sent is processed and stored. A run that was stopped cannot go on; pause it instead if it should.", "Stop"))) ||
			(verb === "abort" && !(await confirmed("Abort this run?", "It ends without waiting for its sources. What they still send is not counted.", "Abort"))))
			return;
		this.busy = true;
		this.update();
		try {
			if (verb === "remove") {
				await api.remove(api.session(this.name));
				location.hash = "#/";
			} else {
				await api.post(api.session(this.name, verb), verb === "stop" || verb === "abort" ? {reason: "page"} : {});
			}
		} catch (error) {
			failed(`${this.name}: ${verb}`, error);
		}
		this.busy = false;
		this.update();
	}

	/** By the number of the run where it is one of our history, else by the session: another run may have that number here. */
	async explain() {
		const session = store.session(this.name), run = store.runOf(session), status = store.statuses.get(this.name);
		dialog(run ? `Why did run ${run} lose frames?` : "Why were frames lost?", await explanation(run ? `runs/${run}` : api.session(this.name), session?.folder ?? status?.folder), {wide: true});
	}
}
