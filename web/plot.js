// plot.js - lines over time or over a number on a canvas: axes with units, values under the pointer.
//
// A plot is told its series once (names, colours of the theme, units) and gets its data again and again: columns of numbers, NaN is a
// gap. Cost: a pass over what is shown, at most once per frame of the screen.

import {Sheet, css, h, replace} from "./dom.js";
import {clock, mark} from "./format.js";
import {linearTicks, logTicks, nearest, roundUp, scale, timeTicks} from "./scale.js";

const RIGHT = 10, TOP = 8, BOTTOM = 22;

export class Plot {
	/** options: label, series [{name, colour, fill, format}], format (of y), time (x are seconds since 1970), xLabel, log, max, floor */
	constructor(options) {
		this.options = options;
		this.data = {x: [], ys: options.series.map(() => [])};
		this.span = null;
		this.pointer = null;
		this.tip = h("div.tip", {hidden: true});
		this.box = h("div.plot", this.tip);
		this.legend = h("span.legend", options.series.length > 1 ? options.series.map((series) =>
			h("span", {class: `key ${series.colour}`}, series.name)) : []);
		this.sheet = new Sheet(this.box, (context, width, height) => this.paint(context, width, height), options.label);
		this.sheet.canvas.addEventListener("pointermove", (event) => this.point(event.offsetX));
		this.sheet.canvas.addEventListener("pointerdown", (event) => this.point(event.offsetX));
		for (const end of ["pointerleave", "pointercancel"])
			this.sheet.canvas.addEventListener(end, () => this.point(null));
	}

	point(x) {
		this.pointer = x;
		this.tip.hidden = x === null;
		this.sheet.soon();
	}

	/** span: [low, high] of x; without it all that there is. */
	set(x, ys, span = null) {
		this.data = {x, ys};
		this.span = span;
		this.sheet.soon();
	}

	close() {
		this.sheet.close();
	}

	shown() {
		const {x} = this.data;
		const [low, high] = this.span ?? [x[0], x.at(-1)];
		let from = 0;
		while (from < x.length && x[from] < low)
			from++;
		return {low, high, from: Math.max(0, from - 1)};
	}

	extent(from) {
		let least = Infinity, most = -Infinity;
		for (const values of this.data.ys)
			for (let i = from; i < values.length; i++)
				if (Number.isFinite(values[i]) && (!this.options.log || values[i] > 0)) {
					least = Math.min(least, values[i]);
					most = Math.max(most, values[i]);
				}
		if (this.options.log)
			return most > 0 ? [10 ** Math.floor(Math.log10(least)), 10 ** Math.ceil(Math.log10(most * 1.05))] : [1e3, 1e9];
		const floor = Math.min(0, least < 0 && least > -Infinity ? -roundUp(-least) : 0);
		return [floor, this.options.max ?? roundUp(Math.max(most, this.options.floor ?? 0))];
	}

	paint(context, width, height) {
		const {low, high, from} = this.shown();
		const [bottom, top] = this.extent(from);
		context.font = `11px ${css("--font")}`;
		const wanted = Math.max(2, Math.round((height - TOP - BOTTOM) / 26));
		const ticks = this.options.log ? logTicks(bottom, top, wanted + 1) : linearTicks(bottom, top, wanted);
		const marks = ticks.map((tick) => [tick, mark(this.options.format(tick))]);
		this.left = 16 + Math.max(18, ...marks.map(([, words]) => context.measureText(words).width));
		const x = scale(low ?? 0, high ?? 1, this.left, width - RIGHT);
		const y = scale(bottom, top, height - BOTTOM, TOP, this.options.log);
		this.axes(context, width, height, x, y, {low, high, marks});
		context.save();
		context.beginPath();
		context.rect(this.left, 0, width - this.left - RIGHT + 1, height);
		context.clip();
		this.options.series.forEach((series, i) => this.line(context, series, this.data.ys[i] ?? [], from, x, y));
		context.restore();
		this.hover(context, width, height, x, y);
	}

	axes(context, width, height, x, y, {low, high, marks}) {
		const {options, left} = this;
		const grid = css("--grid"), dim = css("--dim");
		context.textBaseline = "middle";
		context.textAlign = "right";
		for (const [tick, words] of marks) {
			context.fillStyle = grid;
			context.fillRect(left, Math.round(y(tick)), width - RIGHT - left, 1);
			context.fillStyle = dim;
			context.fillText(words, left - 6, Math.round(y(tick)) + 0.5);
		}
		if (!(high > low))
			return;
		context.textAlign = "center";
		context.textBaseline = "alphabetic";
		const most = Math.max(2, Math.floor((width - left) / 76));
		const ticks = options.time ? timeTicks(low, high, most) : linearTicks(low, high, most);
		for (const tick of ticks) {
			const place = x(tick), label = options.time ? clock(tick * 1000) : (options.xFormat ?? String)(tick);
			const half = context.measureText(label).width / 2;
			context.fillRect(Math.round(place), height - BOTTOM, 1, 3);
			if (place - half > 2 && place + half < width - (options.xLabel ? context.measureText(options.xLabel).width + 14 : 0))
				context.fillText(label, place, height - 6);
		}
		if (options.xLabel) {
			context.textAlign = "right";
			context.fillText(options.xLabel, width - RIGHT, height - 6);
		}
	}

	line(context, series, values, from, x, y) {
		const xs = this.data.x;
		const base = y(Math.max(0, this.options.log ? 1e-300 : 0));
		const colour = css(`--${series.colour}`);
		let start = null, last = null;
		const path = new Path2D(), area = new Path2D();
		const close = () => {
			if (start !== null && series.fill) {
				area.lineTo(last, base);
				area.lineTo(start, base);
			}
			start = null;
		};
		for (let i = from; i < values.length; i++) {
			if (!Number.isFinite(values[i]) || (this.options.log && values[i] <= 0)) {
				close();
				continue;
			}
			const px = x(xs[i]), py = y(values[i]);
			for (const each of [path, area])
				start === null ? each.moveTo(px, py) : each.lineTo(px, py);
			start ??= px;
			last = px;
		}
		close();
		if (series.fill) {
			context.globalAlpha = 0.14;
			context.fillStyle = colour;
			context.fill(area);
			context.globalAlpha = 1;
		}
		context.strokeStyle = colour;
		context.lineWidth = 1.6;
		context.lineJoin = "round";
		context.stroke(path);
	}

	hover(context, width, height, x, y) {
		const {data, options} = this;
		if (this.pointer === null || !data.x.length)
			return;
		let i = nearest(data.x, x.invert(Math.min(width - RIGHT, Math.max(this.left, this.pointer))));
		while (i > 0 && data.ys.every((values) => Number.isNaN(values[i])))
			i--; // a gap: the sample before it
		const place = x(data.x[i]);
		context.fillStyle = css("--dim");
		context.fillRect(Math.round(place), TOP, 1, height - TOP - BOTTOM);
		const rows = options.series.map((series, k) => {
			const value = data.ys[k]?.[i];
			if (value === value && value !== undefined) {
				context.fillStyle = css(`--${series.colour}`);
				context.beginPath();
				context.arc(place, y(value), 3, 0, 7);
				context.fill();
			}
			return h("div", {class: `key ${series.colour}`}, `${series.name} `, h("b", value === value && value !== undefined ? options.format(value) : "\u2013"));
		});
		const where = options.time ? clock(data.x[i] * 1000) : `${(options.xFormat ?? String)(data.x[i])} ${options.xLabel ?? ""}`;
		replace(this.tip, h("div.dim", where), rows);
		const right = place > width / 2;
		this.tip.style.left = right ? "auto" : `${place + 10}px`;
		this.tip.style.right = right ? `${width - place + 10}px` : "auto";
	}
}
