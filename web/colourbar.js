// colourbar.js - the colours below an image with what they mean: a histogram, values, and two handles that set the contrast by hand.

import {histogram, steps, valueOf} from "./colour.js";
import {Sheet, css, h} from "./dom.js";
import {tickText} from "./scale.js";

const SIDE = 14, BAR = 10, LABELS = 16;

export class ColourBar {
	/** view: the ImageView; set(low, high): the handles were moved. */
	constructor(view, set) {
		this.view = view;
		this.set = set;
		this.box = h("div.colourbar");
		this.sheet = new Sheet(this.box, (context, width, height) => this.draw(context, width, height), "colours and their values");
		this.box.addEventListener("pointerdown", (event) => this.grab(event));
	}

	close() {
		this.sheet.close();
	}

	changed() {
		this.sheet.soon();
	}

	/** Where on the bar a handle at a position of the map stands: the map takes all of it. */
	at(place, width) {
		return SIDE + place * (width - 2 * SIDE);
	}

	draw(context, width, height) {
		const {shown, image} = this.view;
		if (!shown || !image)
			return;
		const inner = width - 2 * SIDE, top = height - LABELS - BAR;
		const counts = histogram(this.view.sorted, shown, Math.max(16, Math.min(200, Math.floor(inner / 3))));
		const most = Math.log1p(Math.max(...counts));
		context.fillStyle = css("--faint");
		counts.forEach((n, i) => {
			const size = n ? Math.max(1, ((top - 2) * Math.log1p(n)) / most) : 0;
			context.fillRect(SIDE + (i * inner) / counts.length, top - size, Math.max(1, inner / counts.length - 0.7), size);
		});
		context.drawImage(this.strip(shown.map), SIDE, top, inner, BAR);
		this.marks(context, width, height, inner);
		for (const place of [0, 1]) {
			const x = this.at(place, width);
			context.fillStyle = css("--text");
			context.beginPath();
			context.roundRect(x - 3, top - 4, 6, BAR + 8, 3);
			context.fill();
		}
	}

	/** The colours as a picture of one row. */
	strip(map) {
		const colours = steps(map), data = new ImageData(colours.length, 1);
		this.row ??= h("canvas", {width: colours.length, height: 1});
		new Uint32Array(data.data.buffer).set(colours);
		this.row.getContext("2d").putImageData(data, 0, 0);
		return this.row;
	}

	marks(context, width, height, inner) {
		const {shown, image} = this.view;
		context.font = `11px ${css("--font")}`;
		context.textBaseline = "alphabetic";
		context.fillStyle = css("--dim");
		const unit = image.header.unit ? ` ${image.header.unit}` : "";
		const n = Math.max(1, Math.floor(inner / 110));
		for (let i = 0; i <= n; i++) {
			const value = valueOf(i / n, shown), small = Math.abs(value) < (shown.high - shown.low) / 1e4;
			const words = tickText(small ? 0 : Number(value.toPrecision(2))) + (i === n ? unit : "");
			context.textAlign = i === 0 ? "left" : i === n ? "right" : "center";
			context.fillText(words, i === 0 ? SIDE - 4 : i === n ? width - SIDE + 4 : this.at(i / n, width), height - 3);
		}
	}

	/** Drag an end: its value goes where the pointer goes, on the scale as it was when it was grabbed. */
	grab(event) {
		const {shown} = this.view;
		if (!shown)
			return;
		const width = this.sheet.width, frame = this.box.getBoundingClientRect();
		const place = (e) => (e.clientX - frame.left - SIDE) / (width - 2 * SIDE);
		const start = place(event), upper = start > 0.5, before = {...shown};
		this.box.setPointerCapture(event.pointerId);
		const move = (e) => {
			const by = place(e) - start;
			const value = valueOf(upper ? Math.max(0.02, 1 + by) : Math.min(0.98, by), before);
			const [low, high] = upper ? [before.low, value] : [by < 0 ? before.low + by * (before.high - before.low) : value, before.high];
			if (high > low && Math.abs(by) > 0.004)
				this.set(low, high);
		};
		const end = () => this.box.removeEventListener("pointermove", move);
		this.box.addEventListener("pointermove", move);
		this.box.addEventListener("pointerup", end, {once: true});
		this.box.addEventListener("pointercancel", end, {once: true});
	}
}
