// imagepanel.js - the live image of a session: asks the service for what is seen, says which frame it is and how old.
//
// Model: one request at a time. `after` is the element that is shown, so an answer comes when there is a newer one, or 204 after a second. When
//        zoom or pan show what was not asked for, the request is given up and the part is asked for at once, newest element or not.
//        The age is what the service said when it answered, and the time since, by the clock of this page.

import * as api from "./api.js";
import {ColourBar} from "./colourbar.js";
import {mapNames} from "./colour.js";
import {h, icon, text} from "./dom.js";
import {count, dotted, duration} from "./format.js";
import {ImageView} from "./imageview.js";
import {tickText} from "./scale.js";
import {parseSlim} from "./slim.js";
import {store} from "./store.js";

export const OLD_S = 2;
const KEY = "sluice-image", RETRY_MS = 2000, SETTLE_MS = 120, FIRST_BIN = 8;
// Beyond this host a link may be slower than packing.
const PACKED = /^(localhost|127\.|\[::1\])/.test(globalThis.location?.hostname) ? {} : {encoding: "deflate"};
const STILL = {paused: "the run is paused", ended: "the run has ended", stopping: "the run is being stopped", fault: "the run could not begin", configured: "no run yet: start one", armed: "no frame yet"};
const CALM = ["paused", "ended", "configured", "armed", "fault"]; // no newer frame can come: an old image is no alarm
const DEFAULTS = {map: "inferno", log: true, range: "percentile", percentile: 99.99, low: 0, high: 100, mask: true, peaks: true, rings: true, beam: true};

function stored() {
	try {
		return {...DEFAULTS, ...JSON.parse(localStorage.getItem(KEY) ?? "{}")};
	} catch {
		return {...DEFAULTS};
	}
}

export class ImagePanel {
	constructor(name) {
		this.name = name;
		this.settings = stored();
		this.frozen = false;
		this.why = "waiting for the first image";
		this.newest = null;
		this.received = 0;
		this.view = new ImageView(this.settings, {moved: () => this.moved(), pointed: (info) => this.pointed(info), painted: () => this.bar?.changed()});
		this.bar = new ColourBar(this.view, (low, high) => this.change({range: "manual", low, high}));
		this.build();
		this.timer = setInterval(() => this.age(), 250);
		this.visible = () => document.hidden || this.wake?.();
		document.addEventListener("visibilitychange", this.visible);
		this.keep();
	}

	close() {
		this.closed = true;
		this.abort?.abort();
		clearInterval(this.timer);
		document.removeEventListener("visibilitychange", this.visible);
		this.view.close();
		this.bar.close();
	}

	// ---- the panel ----

	build() {
		const toggle = (key, label, title) => h("button.chip", {title, "aria-pressed": String(this.settings[key]), "data-key": key,
			onclick: () => this.change({[key]: !this.settings[key]})}, label);
		const tool = (name, title, onclick) => h("button.tool", {title, onclick}, icon(name));
		this.chips = [toggle("log", "log", "logarithmic colours (l)"), toggle("mask", "mask", "show masked pixels in a colour of their own (m)"), toggle("peaks", "peaks", "circles around the peaks that the run found (k)"),
			toggle("rings", "rings", "resolution rings (o)"), toggle("beam", "beam", "where the beam hits (b)")];
		this.map = h("select", {title: "colours (c)", "aria-label": "colours", onchange: () => this.change({map: this.map.value})}, mapNames.map((name) => h("option", {value: name}, name)));
		this.range = h("select", {title: "contrast", "aria-label": "contrast", onchange: () => this.pick(this.range.value)},
			[["99", "99 %"], ["99.9", "99.9 %"], ["99.99", "99.99 %"], ["full", "full range"], ["manual", "by hand"]].map(([value, label]) => h("option", {value}, label)));
		this.freezer = h("button.tool", {title: "freeze the image (space)", "aria-label": "freeze the image", "aria-pressed": "false", onclick: () => this.freeze()}, icon("freeze"));
		this.frame = h("span.frame-number");
		this.old = h("span.age", {role: "status"});
		this.note = h("span.frame-note.dim");
		this.readout = h("div.readout", "\u00a0");
		this.cover = h("div.cover");
		this.still = h("canvas.still", {role: "img", "aria-label": "picture of the run", hidden: true});
		this.stage = h("div.stage", this.view.box, this.still, this.cover);
		this.element = h("section.panel.image-panel", {"aria-label": "live image"},
			h("div.panel-head", this.frame, this.old, this.note, h("span.spring"),
				this.freezer, tool("minus", "zoom out (-)", () => this.view.zoom(1 / 1.5)), tool("plus", "zoom in (+)", () => this.view.zoom(1.5)), tool("fit", "whole image (f)", () => this.view.fit())),
			this.stage, h("div.image-tools", this.readout, this.chips), h("div.image-tools", this.bar.box, h("div.picks", this.range, this.map)));
		this.controls();
		this.age();
	}

	controls() {
		for (const chip of this.chips)
			chip.setAttribute("aria-pressed", String(this.settings[chip.dataset.key]));
		this.map.value = this.settings.map;
		this.range.value = this.settings.range === "percentile" ? String(this.settings.percentile) : this.settings.range;
	}

	pick(value) {
		if (value === "manual")
			this.change({range: "manual", low: this.view.shown?.low ?? 0, high: this.view.shown?.high ?? 100});
		else
			this.change(value === "full" ? {range: "full"} : {range: "percentile", percentile: Number(value)});
	}

	change(some) {
		Object.assign(this.settings, some);
		localStorage.setItem(KEY, JSON.stringify(this.settings));
		this.controls();
		this.view.restyle();
	}

	/** A key of the keyboard; whether it was one of ours. */
	key(key) {
		const actions = {
			f: () => this.view.fit(), z: () => this.view.actual(), "+": () => this.view.zoom(1.5), "=": () => this.view.zoom(1.5), "-": () => this.view.zoom(1 / 1.5), " ": () => this.freeze(),
			l: () => this.change({log: !this.settings.log}), m: () => this.change({mask: !this.settings.mask}), k: () => this.change({peaks: !this.settings.peaks}),
			o: () => this.change({rings: !this.settings.rings}), b: () => this.change({beam: !this.settings.beam}),
			c: () => this.change({map: mapNames[(mapNames.indexOf(this.settings.map) + 1) % mapNames.length]}),
			ArrowLeft: () => this.view.shift(0.15, 0), ArrowRight: () => this.view.shift(-0.15, 0), ArrowUp: () => this.view.shift(0, 0.15), ArrowDown: () => this.view.shift(0, -0.15),
		};
		const arrows = key.startsWith("Arrow") && !this.view.box.classList.contains("zoomed");
		if (!actions[key] || arrows)
			return false;
		actions[key]();
		return true;
	}

	freeze() {
		this.frozen = !this.frozen;
		this.freezer.setAttribute("aria-pressed", String(this.frozen));
		this.abort?.abort();
		this.wake?.();
		this.age();
	}

	// ---- what is under the pointer ----

	pointed(info) {
		const header = this.view.image?.header;
		if (!info || !header) {
			text(this.readout, header ? `${header.full_columns} \u00d7 ${header.full_rows} pixels${header.bin > 1 ? `, shown as ${header.how === "mean" ? "means" : "maxima"} of ${header.bin} \u00d7 ${header.bin}` : ""}` : "\u00a0");
			return;
		}
		const parts = [`row ${Math.floor(info.row)}`, `column ${Math.floor(info.column)}`];
		const unit = header.unit ?? "";
		parts.push(info.masked ? "masked" : `${header.type.includes("f") ? tickText(info.value) : count(info.value)} ${unit}${header.bin > 1 ? ` (${header.how ?? "max"} of ${header.bin} \u00d7 ${header.bin})` : ""}`);
		const d = this.resolution(info, header);
		if (d)
			parts.push(`${d.toFixed(d < 10 ? 2 : 1)} \u00c5`);
		text(this.readout, parts.join("  \u00b7  "));
	}

	/** The resolution at a pixel, where the geometry is known and the detector square to the beam. */
	resolution({row, column}, {beam, rings, wavelength_A: wavelength, distance_m: distance, pixel_size_m: size}) {
		if (!beam || !wavelength || !distance || !size || rings.some(({points}) => points))
			return null;
		const angle = Math.atan((Math.hypot(row - beam.row, column - beam.column) * size) / distance);
		return angle > 1e-4 ? wavelength / (2 * Math.sin(angle / 2)) : null;
	}

	// ---- which frame, and how old ----

	ageOf() {
		const {header} = this.view.image;
		return (header.age_ns ?? 0) / 1e9 + (performance.now() - this.received) / 1000;
	}

	/** Why no newer image is there, in words, or "" while there is one. */
	reason() {
		if (store.connection.state !== "live")
			return "connection lost";
		if (this.frozen)
			return "frozen by you";
		const session = store.session(this.name);
		if (!session)
			return "the session is closed";
		if (session.crashed)
			return "the session crashed";
		if (session.state === "configured" && session.run > 0)
			return "ready for the next run";
		return STILL[session.state] ?? (this.view.image?.header.over ? STILL.ended : this.why);
	}

	/** Whether it is meant that no newer frame comes: an old image is then no alarm. */
	calm() {
		const session = store.session(this.name);
		return store.connection.state === "live" && (this.frozen || CALM.includes(session?.crashed ? "crashed" : session?.state));
	}

	age() {
		const image = this.view.image, reason = this.reason(), session = store.session(this.name);
		this.element.classList.toggle("bare", !image);
		const run = store.runOf(session);
		if (!image) {
			this.past(["ended", "configured", "fault"].includes(session?.state) ? run : 0);
			const shown = !this.still.hidden;
			text(this.frame, shown ? `picture of run ${run}` : "live image");
			text(this.old, "");
			text(this.cover, shown ? "" : reason);
			this.stage.className = `stage ${shown ? "" : "none"}`;
			return;
		}
		this.past(0);
		const {header} = image, age = this.ageOf(), old = age > OLD_S, calm = old && this.calm();
		const over = calm && !this.frozen && session.state !== "paused";
		text(this.frame, `frame ${count(header.number)}`);
		text(this.old, over ? "last frame" : age < 60 ? `${age.toFixed(1)} s old` : `${duration(age)} old`);
		text(this.note, dotted(header.verdict, header.peaks.length && `${header.peaks.length} peaks`, header.missing && "module missing"));
		this.old.className = `age ${old ? "old" : "fresh"} ${calm ? "calm" : ""}`;
		this.stage.className = `stage ${old ? "old" : ""} ${calm ? "calm" : ""}`;
		text(this.cover, !old ? "" : over ? `Last frame, of ${duration(age)} ago \u00b7 ${reason}` : `Not live: ${duration(age)} old${reason ? ` \u00b7 ${reason}` : " \u00b7 no newer frame was published"}`);
	}

	/** Without a live image: the picture that a run has in the history. 0: none. */
	past(run) {
		if (run === (this.pastRun ?? 0))
			return;
		this.pastRun = run;
		this.still.hidden = true;
		if (run)
			thumbnail(this.still, `runs/${run}/picture.png`).then(() => {
				this.still.hidden = run !== this.pastRun;
				this.age();
			}, () => setTimeout(() => (this.pastRun = undefined), RETRY_MS * 5));
	}

	// ---- asking the service ----

	/** Zoom or pan: ask for what is seen now, once it stands still. */
	moved() {
		if (this.view.served() || this.frozen)
			return;
		clearTimeout(this.settle);
		this.settle = setTimeout(() => {
			this.other = true;
			this.abort?.abort();
			this.wake?.();
		}, SETTLE_MS);
	}

	/** Wait, at most so long: wake() ends it. */
	sleep(ms) {
		return new Promise((done) => {
			this.wake = done;
			setTimeout(done, ms);
		});
	}

	async keep() {
		while (!this.closed) {
			if (document.hidden || this.frozen || !this.view.sheet.width) {
				await this.sleep(this.view.sheet.width ? 60000 : 100);
				continue;
			}
			try {
				await this.once();
			} catch (error) {
				if (error.name === "AbortError")
					continue;
				this.why = this.words(error);
				await this.sleep(RETRY_MS);
			}
		}
	}

	words(error) {
		if (error.status === 404)
			return "this session publishes no images (no run yet, or no sink share)";
		return error.status === 401 ? "a token is needed" : error.message;
	}

	async once() {
		this.abort = new AbortController();
		const part = this.view.wanted() ?? {bin: FIRST_BIN};
		const query = new URLSearchParams({wait_ms: 1000, ...part, ...PACKED});
		if (this.newest !== null && !this.other)
			query.set("after", this.newest);
		this.other = false;
		const body = await api.bytesOf(api.session(this.name, `image?${query}`), this.abort.signal);
		this.why = "";
		if (body === null || this.closed || this.frozen)
			return;
		const image = parseSlim(body);
		this.newest = image.header.element ?? image.header.n;
		this.received = performance.now();
		this.view.show(image, part);
		this.other = !this.view.served(); // the first one was coarse
		this.age();
	}
}

/** A small picture of the newest image, as the cards of the overview show it. */
export async function thumbnail(canvas, path) {
	const bitmap = await createImageBitmap(await api.blobOf(path));
	canvas.width = bitmap.width;
	canvas.height = bitmap.height;
	canvas.getContext("2d").drawImage(bitmap, 0, 0);
	bitmap.close();
}
