// hops.js - latency of each hop of a frame: a bar from the median to the 99th percentile, a line to the longest, on one logarithmic axis.

import {Sheet, css, h} from "./dom.js";
import {mark, nanoseconds} from "./format.js";
import {logTicks, scale} from "./scale.js";
import {HOPS} from "./words.js";

const LEFT = 64, RIGHT = 70, BOTTOM = 20;

export class Hops {
	constructor() {
		this.latency = {};
		this.box = h("div.plot");
		this.sheet = new Sheet(this.box, (context, width, height) => this.draw(context, width, height), "latency of each hop");
	}

	set(latency) {
		this.latency = latency;
		this.sheet.soon();
	}

	close() {
		this.sheet.close();
	}

	draw(context, width, height) {
		const names = Object.keys(HOPS).filter((name) => this.latency[name]?.count);
		context.font = `11px ${css("--font")}`;
		if (!names.length) {
			context.fillStyle = css("--dim");
			context.textAlign = "center";
			context.fillText("no frame was measured yet", width / 2, height / 2);
			return;
		}
		const low = 10 ** Math.floor(Math.log10(Math.min(...names.map((name) => Math.max(1, this.latency[name].p50)))));
		const high = 10 ** Math.ceil(Math.log10(Math.max(...names.map((name) => this.latency[name].max)) * 1.01));
		const x = scale(low, high, LEFT, width - RIGHT, true);
		this.axis(context, width, height, x, low, high);
		const step = (height - BOTTOM) / names.length;
		names.forEach((name, i) => this.bar(context, name, x, (i + 0.5) * step, width));
	}

	axis(context, width, height, x, low, high) {
		context.textAlign = "center";
		context.textBaseline = "alphabetic";
		for (const tick of logTicks(low, high, Math.floor((width - LEFT - RIGHT) / 46))) {
			context.fillStyle = css("--grid");
			context.fillRect(Math.round(x(tick)), 0, 1, height - BOTTOM);
			context.fillStyle = css("--dim");
			context.fillText(mark(nanoseconds(tick)), x(tick), height - 5);
		}
	}

	bar(context, name, x, y, width) {
		const {p50, p99, max} = this.latency[name];
		const total = name === "total" || name === "decision";
		const colour = css(total ? "--s1" : "--s2");
		context.textBaseline = "middle";
		context.textAlign = "right";
		context.fillStyle = css(total ? "--text" : "--dim");
		context.fillText(name, LEFT - 8, y);
		context.fillStyle = colour;
		context.globalAlpha = 0.45;
		context.fillRect(x(p50), y - 0.75, Math.max(1, x(max) - x(p50)), 1.5);
		context.globalAlpha = 1;
		context.beginPath();
		context.roundRect(x(p50) - 2, y - 4, Math.max(4, x(p99) - x(p50) + 2), 8, 4);
		context.fill();
		context.fillRect(Math.round(x(max)) - 1, y - 4, 1.5, 8);
		context.textAlign = "right";
		context.fillStyle = css(total ? "--text" : "--dim");
		context.fillText(nanoseconds(p99), width - 6, y);
	}
}
