// dom.js - elements in one expression, without a framework.

import {visible} from "./format.js";

const flat = (children) => children.flat(3).filter((child) => child !== null && child !== undefined && child !== false && child !== 0)
	.map((child) => (child instanceof Node ? child : visible(child)));

/** An element: its tag with classes ("div.panel.lit"); properties, event handlers (onclick) and attributes, if any; children. */
export function h(name, properties, ...children) {
	const [tag, ...classes] = name.split(".");
	const element = document.createElement(tag);
	if (tag === "button")
		element.type = "button";
	if (properties === null || typeof properties !== "object" || properties instanceof Node || Array.isArray(properties)) {
		children.unshift(properties);
		properties = {};
	}
	for (const [key, value] of Object.entries(properties)) {
		if (value === undefined || value === null || value === false)
			continue;
		if (key.startsWith("on"))
			element.addEventListener(key.slice(2), value);
		else if (key === "class")
			element.className = value;
		else if (key in element && !key.includes("-"))
			element[key] = key === "title" ? visible(value) : value;
		else
			element.setAttribute(key, value === true ? "" : value);
	}
	if (classes.length)
		element.classList.add(...classes);
	element.append(...flat(children));
	return element;
}

/** Change a text only where it differs: selections and animations survive, and layout is not computed again. */
export function text(element, value) {
	const wanted = visible(value);
	if (element.textContent !== wanted)
		element.textContent = wanted;
}

export function replace(element, ...children) {
	element.replaceChildren(...flat(children));
}

/** A CSS variable of the theme that is shown. */
export function css(name) {
	return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** An icon of the set below. */
const PATHS = {
	play: "M8 5.500v13l11-6.500z", pause: "M7 5h4v14H7zM13 5h4v14h-4z", stop: "M6 6h12v12H6z",
	close: "M6.4 5 5 6.4 10.6 12 5 17.6 6.4 19l5.6-5.6 5.6 5.6 1.4-1.4-5.6-5.600L19 6.4 17.6 5 12 10.600z",
	warning: "M12 2.5 1.5 21h21zm-1 7h2v6h-2zm0 7.500h2v2h-2z", check: "m9.5 16.2-4.2-4.2-1.4 1.4 5.6 5.6 11-11-1.4-1.400z",
	theme: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zm0 2v14a7 7 0 0 1 0-14z",
	fit: "M4 4h6v2H6v4H4zm10 0h6v6h-2V6h-4zM4 14h2v4h4v2H4zm14 0h2v6h-6v-2h4z", plus: "M11 5h2v6h6v2h-6v6h-2v-6H5v-2h6z", minus: "M5 11h14v2H5z",
	more: "m7 9.500 5 5 5-5z",
	freeze: "M11 2h2v20h-2zM2.8 7.9l1-1.7 17.4 10-1 1.7zM20.2 6.2l1 1.7-17.4 10-1-1.7z",
};

export function icon(name) {
	const space = "http://www.w3.org/2000/svg";
	const svg = document.createElementNS(space, "svg"), path = document.createElementNS(space, "path");
	svg.setAttribute("viewBox", "0 0 24 24");
	svg.setAttribute("class", "icon");
	svg.setAttribute("aria-hidden", "true");
	path.setAttribute("d", PATHS[name]);
	svg.append(path);
	return svg;
}

/** A canvas that follows the size of its element in device pixels; draw(context, width, height) is called in CSS pixels,
 *  at most once per frame of the screen. */
export class Sheet {
	constructor(parent, draw, label) {
		this.canvas = h("canvas", {role: "img", "aria-label": label ?? ""});
		this.context = this.canvas.getContext("2d");
		this.draw = draw;
		this.width = this.height = 0;
		this.ratio = 1;
		parent.append(this.canvas);
		this.observer = new ResizeObserver(() => this.resize());
		this.observer.observe(parent);
		this.parent = parent;
	}

	resize() {
		const ratio = Math.min(window.devicePixelRatio || 1, 3);
		const width = this.parent.clientWidth, height = this.parent.clientHeight;
		if (width === this.width && height === this.height && ratio === this.ratio)
			return;
		Object.assign(this, {width, height, ratio});
		this.canvas.width = Math.round(width * ratio);
		this.canvas.height = Math.round(height * ratio);
		this.onresize?.(); // first: what is drawn has to fit the new size
		this.now();
	}

	/** Draw before the next frame of the screen. */
	soon() {
		this.pending ??= requestAnimationFrame(() => this.now());
	}

	now() {
		cancelAnimationFrame(this.pending);
		this.pending = undefined;
		if (!this.width || !this.height)
			return;
		this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
		this.context.clearRect(0, 0, this.width, this.height);
		this.draw(this.context, this.width, this.height);
	}

	close() {
		this.observer.disconnect();
		cancelAnimationFrame(this.pending);
	}
}
