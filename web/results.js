// results.js - small results of the newest frame as plots: the azimuthal profile, and whatever else is a list of numbers.

import * as api from "./api.js";
import {h, text} from "./dom.js";
import {count} from "./format.js";
import {Plot} from "./plot.js";
import {tickText} from "./scale.js";
import {store} from "./store.js";

const EVERY_MS = 700, RETRY_MS = 4000;

/** {x, y, sigma} of a profile: rows of middles, intensity and its error, or a plain list. */
export function curve({shape, data}) {
	const n = shape.at(-1), row = (i) => data.slice(i * n, (i + 1) * n).map((value) => (value === null ? NaN : value));
	if (shape.length === 2 && shape[0] >= 2)
		return {x: row(0), y: row(1)};
	return {x: Array.from({length: n}, (_, i) => i), y: row(0)};
}

export class Results {
	constructor(name) {
		this.name = name;
		this.log = false;
		this.note = h("span.dim");
		this.toggle = h("button.chip", {"aria-pressed": "false", title: "logarithmic axis", onclick: () => this.turn()}, "log");
		this.place = h("div");
		this.element = h("section.panel.chart.profile", {"aria-label": "profile", hidden: true}, h("div.panel-head", h("h2", "Profile"), this.note, h("span.spring"), this.toggle), this.place);
		this.make("", "");
		this.keep();
	}

	make(unit, xLabel) {
		this.plot?.close();
		this.unit = xLabel;
		this.plot = new Plot({label: "azimuthal profile", log: this.log, format: tickText, xFormat: (value) => tickText(Number(value.toPrecision(3))), xLabel, series: [{name: unit || "intensity", colour: "s1", fill: !this.log}]});
		this.place.replaceChildren(this.plot.box);
	}

	turn() {
		this.log = !this.log;
		this.toggle.setAttribute("aria-pressed", String(this.log));
		this.make(this.shown?.unit, this.unit);
		this.draw();
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
		if (!results || this.closed || results.element === this.element_shown)
			return;
		this.element_shown = results.element;
		const {profile} = results.arrays ?? {};
		if (!profile?.data?.length)
			return;
		this.shown = profile;
		this.number = results.number;
		const xLabel = profile.x_unit ?? profile.axis ?? "";
		if (xLabel !== this.unit)
			this.make(profile.unit, xLabel);
		this.element.hidden = false;
		this.draw();
	}

	draw() {
		if (!this.shown)
			return;
		const {x, y} = curve(this.shown);
		text(this.note, this.number === undefined ? "" : `frame ${count(this.number)}`);
		this.plot.set(x, [y]);
	}
}
