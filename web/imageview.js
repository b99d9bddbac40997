// imageview.js - one detector image on a canvas: colours, overlays, zoom and pan by mouse, touch and keyboard.
//
// Model: show(parsed, request) gives the newest part of the image; the view (viewport.js) says which part is seen. Where the part does not have
//        what is seen, it is drawn where it belongs, until wanted() is answered by a better one.
// Cost:  painting a megapixel takes 3 to 6 ms, once for each new image or contrast; zoom and pan only copy the painted image.
//        A worker would cost a copy of each image and save nothing that is felt.

import {limits, paint, sample} from "./colour.js";
import {Sheet, h} from "./dom.js";
import {drawOverlays} from "./overlays.js";
import {valueAt} from "./slim.js";
import * as viewport from "./viewport.js";

const MOST_RATIO = 2; // device pixels per CSS pixel that images are asked for: more is not seen, and costs

export class ImageView {
	/** on: {moved(), pointed(info | null), painted()}; settings: {map, log, range, percentile, low, high, mask, peaks, rings, beam, numbers} */
	constructor(settings, on) {
		this.settings = settings;
		this.on = on;
		this.image = null; // {header, pixels}
		this.view = null;
		this.fitted = true;
		this.pointers = new Map();
		this.buffer = document.createElement("canvas");
		this.box = h("div.canvas-box", {tabindex: 0});
		this.sheet = new Sheet(this.box, (context, width, height) => this.draw(context, width, height), "live image of the detector");
		this.sheet.onresize = () => this.resized();
		this.listen();
	}

	get window() {
		return {width: this.sheet.width, height: this.sheet.height};
	}

	get ratio() {
		return Math.min(this.sheet.ratio, MOST_RATIO);
	}

	get full() {
		const header = this.image?.header;
		return header ? {rows: header.full_rows, columns: header.full_columns} : null;
	}

	close() {
		this.sheet.close();
	}

	// ---- data ----

	show(image, request) {
		const before = this.full;
		this.image = image;
		this.request = request;
		this.sorted = sample(image.pixels, image.header.invalid, image.header.columns);
		if (!before || before.rows !== this.full.rows || before.columns !== this.full.columns)
			this.fitted = true;
		if (this.fitted || !this.view)
			this.view = viewport.fit(this.window, this.full);
		this.contrast();
		this.repaint();
		this.pointed();
	}

	clear() {
		this.image = this.view = null;
		this.fitted = true;
		this.shown = undefined;
		this.sheet.soon();
	}

	/** Limits of the contrast; those that follow the image move there in a few frames, so that the picture does not flicker. */
	contrast() {
		const wanted = limits(this.sorted, this.settings), before = this.shown;
		const follows = this.settings.range !== "manual" && before && before.range === this.settings.range && before.percentile === this.settings.percentile;
		const part = follows ? 0.35 : 1;
		const near = 0.01 * (wanted.high - wanted.low), ease = (from, to) => (Math.abs(to - from) < near ? to : from + (to - from) * part);
		const fractions = this.image.header.type.includes("f");
		this.shown = {
			low: follows ? ease(before.low, wanted.low) : wanted.low, high: follows ? ease(before.high, wanted.high) : wanted.high,
			log: this.settings.log, map: this.settings.map, range: this.settings.range, percentile: this.settings.percentile, fractions,
		};
		if (!(this.shown.high > this.shown.low))
			Object.assign(this.shown, wanted);
	}

	/** After another map, contrast or mask. */
	restyle() {
		if (!this.image)
			return;
		this.shown = undefined;
		this.contrast();
		this.repaint();
	}

	repaint() {
		const {header, pixels} = this.image;
		if (this.buffer.width !== header.columns || this.buffer.height !== header.rows || !this.data) {
			this.buffer.width = header.columns;
			this.buffer.height = header.rows;
			this.pen = this.buffer.getContext("2d", {alpha: false});
			this.data = this.pen.createImageData(header.columns, header.rows);
		}
		const mask = this.settings.mask ? [58, 64, 72] : this.settings.map.endsWith("inverted") ? [255, 255, 255] : [0, 0, 0];
		paint(pixels, header.invalid, this.shown, mask, new Uint32Array(this.data.data.buffer));
		this.pen.putImageData(this.data, 0, 0);
		this.sheet.soon();
		this.on.painted();
	}

	// ---- what is wanted of the service ----

	/** The part to ask for now; without an image yet, the whole of it, as large as the window. */
	wanted() {
		return this.full ? viewport.region(this.view, this.window, this.full, this.ratio) : null;
	}

	/** Whether what was asked for last still is what is seen. */
	served() {
		return Boolean(this.full && this.request?.width && viewport.serves(this.request, this.view, this.window, this.full, this.ratio));
	}

	// ---- drawing ----

	draw(context, width, height) {
		context.fillStyle = this.settings.map.endsWith("inverted") ? "#f4f6f8" : "#080c10";
		context.fillRect(0, 0, width, height);
		if (!this.image)
			return;
		const {header} = this.image, window = {width, height};
		const corner = viewport.toScreen(this.view, window, header.y, header.x);
		const scale = header.bin * this.view.scale;
		context.imageSmoothingEnabled = scale * this.sheet.ratio < 2;
		context.imageSmoothingQuality = "high";
		context.drawImage(this.buffer, corner.x, corner.y, header.columns * scale, header.rows * scale);
		drawOverlays(context, {image: this.image, view: this.view, window, settings: this.settings, shown: this.shown});
	}

	// ---- moving about ----

	moved(view) {
		this.view = view;
		this.fitted = viewport.isFit(view, this.window, this.full) && view.scale >= viewport.fit(this.window, this.full).scale * 0.999;
		this.box.classList.toggle("zoomed", !viewport.isFit(view, this.window, this.full));
		this.sheet.soon();
		this.on.moved();
		this.pointed();
	}

	resized() {
		if (!this.full)
			return;
		this.moved(this.fitted ? viewport.fit(this.window, this.full) : viewport.clamp(this.view, this.window, this.full));
	}

	zoom(factor, x = this.window.width / 2, y = this.window.height / 2) {
		if (this.full)
			this.moved(viewport.zoomAt(this.view, this.window, this.full, factor, x, y));
	}

	fit() {
		if (this.full)
			this.moved(viewport.fit(this.window, this.full));
	}

	/** One image pixel on one CSS pixel, around the pointer or the middle. */
	actual() {
		if (this.full)
			this.zoom(1 / this.view.scale, this.at?.x, this.at?.y);
	}

	shift(dx, dy) {
		if (this.full)
			this.moved(viewport.pan(this.view, this.window, this.full, dx * this.window.width, dy * this.window.height));
	}

	listen() {
		const {box, pointers} = this;
		const place = (event) => {
			const frame = box.getBoundingClientRect();
			return {x: event.clientX - frame.left, y: event.clientY - frame.top};
		};
		box.addEventListener("wheel", (event) => {
			event.preventDefault();
			const {x, y} = place(event);
			this.zoom(Math.exp(-Math.max(-80, Math.min(80, event.deltaY * (event.deltaMode ? 16 : 1))) * 0.004), x, y);
		}, {passive: false});
		box.addEventListener("dblclick", (event) => {
			const {x, y} = place(event);
			if (this.full && this.fitted)
				this.zoom(4, x, y);
			else
				this.fit();
		});
		box.addEventListener("pointerdown", (event) => {
			pointers.set(event.pointerId, place(event));
			if (event.pointerType === "mouse")
				box.setPointerCapture(event.pointerId);
		});
		box.addEventListener("pointermove", (event) => this.drag(event, place(event)));
		for (const end of ["pointerup", "pointercancel", "pointerleave"])
			box.addEventListener(end, (event) => {
				pointers.delete(event.pointerId);
				if (end === "pointerleave" || event.pointerType !== "mouse")
					this.point(null);
			});
	}

	drag(event, now) {
		const before = this.pointers.get(event.pointerId);
		if (before)
			this.pointers.set(event.pointerId, now);
		if (!this.full)
			return;
		if (this.pointers.size === 2 && before) {
			const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
			const length = (a, b) => Math.hypot(a.x - b.x, a.y - b.y) || 1;
			this.zoom(length(now, other) / length(before, other), (now.x + other.x) / 2, (now.y + other.y) / 2);
			this.moved(viewport.pan(this.view, this.window, this.full, (now.x - before.x) / 2, (now.y - before.y) / 2));
		} else if (before && event.pressure !== 0 && (event.pointerType === "mouse" || this.box.classList.contains("zoomed"))) {
			this.moved(viewport.pan(this.view, this.window, this.full, now.x - before.x, now.y - before.y));
		}
		this.point(now);
	}

	point(at) {
		this.at = at;
		this.pointed();
	}

	/** Tell the value under the pointer, also when the image below it changes. */
	pointed() {
		if (!this.at || !this.full)
			return this.on.pointed(null);
		const {row, column} = viewport.toImage(this.view, this.window, this.at.x, this.at.y);
		const found = valueAt(this.image, row, column);
		this.on.pointed(found ? {...found, row, column} : null);
	}
}
