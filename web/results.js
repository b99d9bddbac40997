// results.js - small results of the newest frame as plots: the azimuthal profile, and whatever else is a list of numbers.

import * as api from "./api.js";
import {h, text} from "./dom.js";
import {count} from "./format.js";
import {Plot} from "./plot.js";
import {tickText} from "./scale.js";
import {store} from "./store.js";

const EVERY_MS = 700, RETRY_MS = 4000;

/** {x, y, xLabel} of the result `profile`: rows of middles, intensity and sigma, or a plain list; and of the array `profile_...` that
 *  is its axis. null: this frame has none. */
export function curve(arrays) {
	const {profile} = arrays ?? {};
	if (!profile?.data?.length)
		return null;
	const n = profile.shape.at(-1), row = (i) => profile.data.slice(i * n, (i + 1) * n).map((value) => value ?? NaN);
	const [name, axis] = Object.entries(arrays).find(([name, {shape}]) => name.startsWith("profile_") && shape.length === 1 && shape[0] === n) ?? [];
	const rows = profile.shape.length === 2 && profile.shape[0] >= 2;
	return {x: axis?.data ?? (rows ? row(0) : Array.from({length: n}, (_, i) => i)), y: row(rows ? 1 : 0), xLabel: name ? `${name.slice(8).replaceAll("_", " ")} ${axis.unit}`.trim() : ""};
}

export class Results {
	constructor(name) {
		this.name = name;
		this.log = false;
		this.note = h("span.dim");
		this.toggle = h("button.chip", {"aria-pressed": "false", title: "logarithmic axis", onclick: () => this.turn()}, "log");
		this.place = h("div");
		this.element = h("section.panel.chart.profile", {"aria-label": "profile", hidden: true}, h("div.panel-head", h("h2", "Profile"), this.note, h("span.spring"), this.toggle), this.place);
		this.make("");
		this.keep();
	}

	make(xLabel) {
		this.plot?.close();
		this.xLabel = xLabel;
		this.plot = new Plot({label: "azimuthal profile", log: this.log, format: tickText, xFormat: (value) => tickText(Number(value.toPrecision(3))), xLabel, series: [{name: "intensity", colour: "s1", fill: !this.log}]});
		this.place.replaceChildren(this.plot.box);
	}

	turn() {
		this.log = !this.log;
		this.toggle.setAttribute("aria-pressed", String(this.log));
		this.make(this.xLabel);
		if (this.shown)
			this.plot.set(this.shown.x, [this.shown.y]);
	}

	close() {
		this.closed = true;
		clearTimeout(this.timer);
		this.plot.close();
	}

	async keep() {
		let wait = EVERY_MS;
		try {
			if (!document.hidden && store.connection.state === "live")
				this.take(await api.get(api.session(this.name, "results")));
		} catch {
			wait = RETRY_MS; // no share, or no run: the image says so
		}
		if (!this.closed)
			this.timer = setTimeout(() => this.keep(), wait);
	}

	take(results) {
		if (!results || this.closed || results.element === this.newest)
			return;
		this.newest = results.element;
		const found = curve(results.arrays);
		if (!found)
			return;
		if (found.xLabel !== this.xLabel)
			this.make(found.xLabel);
		this.shown = found;
		this.element.hidden = false;
		text(this.note, `frame ${count(results.number)}`);
		this.plot.set(found.x, [found.y]);
	}
}
